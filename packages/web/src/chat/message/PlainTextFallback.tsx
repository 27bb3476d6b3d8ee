import { Component, type ReactNode } from "react";
import { PlainText } from "../../markdown/Markdown.tsx";

interface PlainTextFallbackProps {
  text: string;
  children: ReactNode;
}

interface PlainTextFallbackState {
  text: string;
  failed: boolean;
}

/** Shows a message as plain text if rendering it fails, so that one message never hides the others. */
export class PlainTextFallback extends Component<PlainTextFallbackProps, PlainTextFallbackState> {
  override state = { text: this.props.text, failed: false };

  static getDerivedStateFromError(): Partial<PlainTextFallbackState> {
    return { failed: true };
  }

  /** An edited or growing message is tried again. */
  static getDerivedStateFromProps({ text }: PlainTextFallbackProps, state: PlainTextFallbackState) {
    return text === state.text ? null : { text, failed: false };
  }

  override render() {
    return this.state.failed ? <PlainText text={this.props.text} /> : this.props.children;
  }
}
