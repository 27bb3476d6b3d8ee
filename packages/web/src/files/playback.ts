import { type RefObject, useState } from "react";

const STOPPED = { isPlaying: false, isMuted: false, seconds: 0, duration: 0 };

/** Only one file of the page plays at a time. */
let playing: HTMLMediaElement | null = null;

/** What a player does, and what its controls do. `events` belong to its element. */
export function usePlayback(element: RefObject<HTMLMediaElement | null>) {
  const [state, setState] = useState(STOPPED);
  const read = () => {
    const { current: media } = element;
    if (!media) return;
    const { paused, muted, currentTime, duration } = media;
    if (!paused && playing !== media) {
      playing?.pause();
      playing = media;
    }
    setState({
      isPlaying: !paused,
      isMuted: muted,
      seconds: currentTime,
      duration: Number.isFinite(duration) ? duration : 0,
    });
  };
  const use = (action: (media: HTMLMediaElement) => void) => () => {
    if (element.current) action(element.current);
  };
  return {
    ...state,
    events: {
      onPlay: read,
      onPause: read,
      onTimeUpdate: read,
      onDurationChange: read,
      onVolumeChange: read,
    },
    // A file that cannot be played has a message of its own.
    toggle: use((media) => (media.paused ? void media.play().catch(() => {}) : media.pause())),
    mute: use((media) => {
      media.muted = !media.muted;
    }),
    seek: (seconds: number) =>
      use((media) => {
        media.currentTime = seconds;
      })(),
  };
}

export type Playback = ReturnType<typeof usePlayback>;

/** Minutes and seconds, with hours if there are any: «1:02:03». */
export function clock(seconds: number): string {
  const whole = Math.floor(seconds);
  const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const shown = parts[0] === 0 ? parts.slice(1) : parts;
  return shown.map((part, place) => (place === 0 ? part : `${part}`.padStart(2, "0"))).join(":");
}
