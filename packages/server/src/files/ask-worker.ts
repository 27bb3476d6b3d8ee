/** The answer of a thread that reads what strangers made, and is ended at the deadline: then null. */
export async function askWorker<Answer>(worker: Worker, deadlineMs: number) {
  const { promise, resolve } = Promise.withResolvers<Answer | null>();
  const timer = setTimeout(() => resolve(null), deadlineMs);
  worker.addEventListener("message", ({ data }: MessageEvent<Answer>) => resolve(data));
  worker.addEventListener("error", () => resolve(null));
  const answer = await promise;
  clearTimeout(timer);
  worker.terminate();
  return answer;
}
