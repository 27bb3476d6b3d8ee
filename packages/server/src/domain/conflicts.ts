/** Another node created at the same time what a unit of work was about to create. */
export class CreationConflict extends Error {}

const MAX_ATTEMPTS = 5;

/** Runs the work again after a conflict: it then finds what the other node created. */
export async function retryOnConflict<Result>(work: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof CreationConflict) || attempt === MAX_ATTEMPTS) throw error;
    }
  }
}
