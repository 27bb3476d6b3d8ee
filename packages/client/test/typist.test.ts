import { afterEach, beforeEach, expect, jest, test } from "bun:test";
import { createStore } from "../src/model/store.ts";
import { typist } from "../src/send/typing.ts";
import { anEvent, bob, CHAT, claude } from "./support/records.ts";

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

function aTypist() {
  const store = createStore("online");
  const told: boolean[] = [];
  const typing = typist(
    store,
    (_chat, isTyping) => void told.push(isTyping),
    () => true,
  );
  return { store, told, typing };
}

test("keystrokes are told of once in four seconds", () => {
  const { told, typing } = aTypist();
  for (let second = 0; second < 9; second++) {
    typing.typing(CHAT);
    jest.advanceTimersByTime(1000);
  }
  expect(told).toEqual([true, true, true]);
});

test("sending ends it, and the next keystroke is told of at once", () => {
  const { told, typing } = aTypist();
  typing.typing(CHAT);
  typing.stop(CHAT);
  typing.stop(CHAT);
  typing.typing(CHAT);
  expect(told).toEqual([true, false, true]);
});

test("people whose end was never told stop at last; agents type as long as they write", () => {
  const { store } = aTypist();
  const actors = () => store.get(`typing:${CHAT}`).actors.map(({ username }) => username);
  for (const actor of [bob, claude]) {
    store.dispatch(anEvent("events.typing", { conversation_id: CHAT, actor, is_typing: true }));
  }
  jest.advanceTimersByTime(29_000);
  expect(actors()).toEqual(["bob", "ann:claude"]);
  jest.advanceTimersByTime(2000);
  expect(actors()).toEqual(["ann:claude"]);
});

test("somebody whose typing is renewed is shown for as long as that goes on", () => {
  const { store, typing } = aTypist();
  const actors = () => store.get(`typing:${CHAT}`).actors.map(({ username }) => username);
  const renewal = anEvent("events.typing", {
    conversation_id: CHAT,
    actor: bob,
    is_typing: true,
  });
  for (let second = 0; second < 120; second += 5) {
    store.dispatch(renewal);
    typing.heard(renewal.frame);
    jest.advanceTimersByTime(5000);
    expect(actors()).toEqual(["bob"]);
  }
  jest.advanceTimersByTime(25_000);
  expect(actors()).toEqual([]);
});
