/** Whether calls can reach the service. */
export interface Reachability {
  /** Whether a call made now can reach the service. */
  canCall(): boolean;
  /**
   * Resolves when there is a connection, or at once if the client is not meant to have one. Rejects
   * when the client is closed or signed out.
   */
  whenReachable(): Promise<void>;
}

export interface Connectivity extends Reachability {
  /** Whether a socket is open, so that events arrive. */
  isConnected(): boolean;
  /** Closes the connection and opens a new one. */
  reconnect(): void;
}
