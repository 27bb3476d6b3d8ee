/** Ends the work when the process stops. The next process continues it. */
export class Stopped extends Error {
  override name = "Stopped";
}
