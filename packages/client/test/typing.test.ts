import { afterEach, beforeEach, expect, jest, test } from "bun:test";
import { createStore } from "../src/model/store.ts";
import { TypingSignals } from "../src/send/typing.ts";
import { aChange, aChat, anEvent, ann, bob, CHAT, claude } from "./support/records.ts";

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

function typingSignals() {
  const store = createStore("online");
  const reported: boolean[] = [];
  const typing = new TypingSignals(
    store,
    (_chat, isTyping) => void reported.push(isTyping),
    () => true,
  );
  return { store, reported, typing };
}

test("keystrokes are reported at most once in four seconds", () => {
  const { reported, typing } = typingSignals();
  for (let second = 0; second < 9; second++) {
    typing.keystroke(CHAT);
    jest.advanceTimersByTime(1000);
  }
  expect(reported).toEqual([true, true, true]);
});

test("sending ends the typing, and the next keystroke is reported at once", () => {
  const { reported, typing } = typingSignals();
  typing.keystroke(CHAT);
  typing.stop(CHAT);
  typing.stop(CHAT);
  typing.keystroke(CHAT);
  expect(reported).toEqual([true, false, true]);
});

test("typing of people expires without an end event; typing of agents does not", () => {
  const { store } = typingSignals();
  const actors = () => store.get(`typing:${CHAT}`).actors.map(({ username }) => username);
  for (const actor of [bob, claude]) {
    store.dispatch(anEvent("events.typing", { conversation_id: CHAT, actor, is_typing: true }));
  }
  jest.advanceTimersByTime(29_000);
  expect(actors()).toEqual(["bob", "ann:claude"]);
  jest.advanceTimersByTime(2000);
  expect(actors()).toEqual(["ann:claude"]);
});

test("typing of people and agents who leave or are removed ends", () => {
  for (const kind of ["left", "removed"] as const) {
    const { store } = typingSignals();
    store.dispatch({ type: "me", me: ann });
    const actors = () => store.get(`typing:${CHAT}`).actors.map(({ username }) => username);
    const cat = { ...bob, username: "cat" };
    for (const actor of [bob, claude, cat]) {
      store.dispatch(anEvent("events.typing", { conversation_id: CHAT, actor, is_typing: true }));
    }
    const gone = { ...aChange(1), kind, subjects: [bob, claude], subject_count: 2 };
    const update = { ...aChat({ seq: 1, participants: [ann, cat] }), changes: [gone] };
    store.dispatch(anEvent("events.conversationUpdated", update, 1));
    expect(actors()).toEqual(["cat"]);
  }
});

test("renewed typing does not expire", () => {
  const { store, typing } = typingSignals();
  const actors = () => store.get(`typing:${CHAT}`).actors.map(({ username }) => username);
  const renewal = anEvent("events.typing", {
    conversation_id: CHAT,
    actor: bob,
    is_typing: true,
  });
  for (let second = 0; second < 120; second += 5) {
    store.dispatch(renewal);
    typing.handleEvent(renewal.frame);
    jest.advanceTimersByTime(5000);
    expect(actors()).toEqual(["bob"]);
  }
  jest.advanceTimersByTime(25_000);
  expect(actors()).toEqual([]);
});
