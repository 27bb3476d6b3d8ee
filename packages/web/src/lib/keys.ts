const isApple = /Mac|iPhone|iPad/.test(navigator.userAgent);

/** Keys as they are printed on the keyboard. */
export const keyNames = isApple
  ? { switcher: "⌘K", neighbours: "⌥ ↑ ↓" }
  : { switcher: "Ctrl K", neighbours: "Alt ↑ ↓" };
