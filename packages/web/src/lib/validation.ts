export type FieldErrors = Record<string, string>;

type FormField = HTMLInputElement | HTMLTextAreaElement;

export const isFormField = (element: unknown): element is FormField =>
  (element instanceof HTMLInputElement || element instanceof HTMLTextAreaElement) &&
  element.name !== "";

export const MISSING = "Please fill this in.";

/** Whether a field that must be filled is empty. */
export const isMissing = (field: unknown) =>
  isFormField(field) && field.required && field.value.trim() === "";

/** Why the value of a field violates the field's attributes; null if it does not. */
export function validationError(field: FormField): string | null {
  const { value, validity, minLength } = field;
  if (field.disabled) return null;
  if (isMissing(field)) return MISSING;
  // Browsers check the length of typed text only, not of text that was filled in.
  if (value !== "" && value.length < minLength) return `At least ${minLength} characters.`;
  if (validity.valid) return null;
  if (validity.badInput) return `Please enter a ${field.type === "date" ? "date" : "number"}.`;
  if (validity.patternMismatch) return field.title;
  if (field instanceof HTMLInputElement) {
    if (validity.rangeUnderflow) return `At least ${field.min}.`;
    if (validity.rangeOverflow) return `At most ${Number(field.max).toLocaleString()}.`;
    if (validity.stepMismatch) return "A whole number, please.";
  }
  return field.validationMessage;
}
