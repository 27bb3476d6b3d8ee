import type { KeyboardEvent } from "react";

/**
 * Whether a key belongs to an input method, such as the Enter that confirms a candidate. Safari sends
 * that key after the end of the composition, with the key code 229.
 */
export const isCompositionKey = ({ nativeEvent }: KeyboardEvent): boolean =>
  nativeEvent.isComposing || nativeEvent.keyCode === 229;
