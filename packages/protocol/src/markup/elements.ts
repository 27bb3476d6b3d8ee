/** The elements of the markup: the blocks of a message, and the names of their tags. */

export interface MarkdownBlock {
  type: "markdown";
  text: string;
}
export interface ButtonBlock {
  type: "button";
  action: string;
  label: string;
}
interface Field {
  name: string;
  label: string;
  required: boolean;
  /** A description of the field. */
  hint?: string;
  /** What the field is prefilled with. */
  value?: string;
}
export interface InputField extends Field {
  type: "input";
  input_type: InputType;
}
export interface SelectField extends Field {
  type: "select";
  options: string[];
}
export interface FormBlock {
  type: "form";
  id: string;
  children: (InputField | SelectField | ButtonBlock | MarkdownBlock)[];
}
export interface CardBlock {
  type: "card";
  title: string;
  children: Block[];
}
export type Block = MarkdownBlock | CardBlock | ButtonBlock | FormBlock;

export const inputTypes = ["text", "number", "email", "date"] as const;
export type InputType = (typeof inputTypes)[number];

type Option = { type: "option"; label: string };
/** What an opening tag represents. */
export type Piece = Block | InputField | SelectField | Option;

export const tagNames = ["card", "button", "form", "input", "select", "option"] as const;
export type TagName = (typeof tagNames)[number];
export type ContainerName = "card" | "form" | "select";
export const isContainer = (name: string | undefined): name is ContainerName =>
  name === "card" || name === "form" || name === "select";
