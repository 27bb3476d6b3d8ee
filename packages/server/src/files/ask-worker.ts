/**
 * The answer of a thread, which is ended at the deadline: it reads what was made by strangers. Null if there
 * is no answer in time.
 */
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
