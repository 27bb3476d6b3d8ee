/** Whether this run has time for everything: `npm run test:all`. */
export const isFullRun = Boolean(process.env.PARLEY_TEST_FULL);

/** How often to repeat something random or a crash: `all` times in a full run, `few` times otherwise. */
export const rounds = ({ few, all }: { few: number; all: number }): number =>
  isFullRun ? all : few;
