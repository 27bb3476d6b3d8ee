import {
  type CSSProperties,
  type ReactNode,
  type RefObject,
  type SyntheticEvent,
  useRef,
  useState,
} from "react";
import { useConnection } from "../lib/connection.ts";
import { IconButton } from "../ui/Button.tsx";
import { useLoadedLink } from "./links.ts";
import { clock, type Playback, usePlayback } from "./playback.ts";
import type { ShownFile } from "./shown-file.ts";

interface PlayerProps {
  file: ShownFile;
}

/** A video in a box of fixed size. Loads only its first bytes until it is played. */
export function VideoPlayer({ file }: PlayerProps) {
  const box = useRef<HTMLDivElement>(null);
  const video = useRef<HTMLVideoElement>(null);
  const playback = usePlayback(video);
  const source = useSource(file);
  return (
    <div
      ref={box}
      className="group/video relative aspect-video w-80 max-w-full overflow-hidden rounded-lg bg-lightbox text-on-lightbox"
    >
      <video
        ref={video}
        {...source.attributes}
        {...playback.events}
        playsInline
        preload="metadata"
        aria-label={file.name}
        title={file.name}
        onClick={playback.toggle}
        className="size-full"
      />
      <div
        className={`absolute inset-x-0 bottom-0 flex items-center bg-linear-to-t from-black/75 to-transparent px-1.5 pt-6 pb-1 transition-opacity ${playback.isPlaying ? "not-pointer-coarse:opacity-0 group-focus-within/video:opacity-100 group-hover/video:opacity-100" : ""}`}
      >
        <Controls file={file} playback={playback} problem={source.problem} onDark>
          <IconButton
            small
            icon="fullscreen"
            label="Full screen"
            className={ON_DARK}
            onClick={() => showOnWholeScreen(box, video)}
          />
        </Controls>
      </div>
    </div>
  );
}

export function AudioPlayer({ file }: PlayerProps) {
  const audio = useRef<HTMLAudioElement>(null);
  const playback = usePlayback(audio);
  const source = useSource(file);
  return (
    <div className="w-80 max-w-full rounded-lg border border-line bg-surface p-2">
      <p dir="auto" className="truncate px-1 text-sm font-medium">
        {file.name}
      </p>
      <audio
        ref={audio}
        {...source.attributes}
        {...playback.events}
        preload="metadata"
        aria-label={file.name}
      />
      <div className="flex items-center">
        <Controls file={file} playback={playback} problem={source.problem} />
      </div>
    </div>
  );
}

const ON_DARK = "text-on-lightbox! hover:bg-white/15!";

interface ControlsProps extends PlayerProps {
  playback: Playback;
  /** Why it cannot be played. */
  problem: string | null;
  onDark?: boolean;
  children?: ReactNode;
}

function Controls({ file, playback, problem, onDark, children }: ControlsProps) {
  const { isPlaying, isMuted, seconds, duration, toggle, mute, seek } = playback;
  const look = onDark ? ON_DARK : "";
  const muted = onDark ? "" : "text-ink-3";
  if (problem !== null) return <p className={`px-1 py-1.5 text-sm ${muted}`}>{problem}</p>;
  return (
    <>
      <IconButton
        small
        icon={isPlaying ? "pause" : "play"}
        label={`${isPlaying ? "Pause" : "Play"} ${file.name}`}
        className={look}
        onClick={toggle}
      />
      <input
        type="range"
        step="any"
        min={0}
        max={duration || 1}
        value={seconds}
        aria-label={`Position in ${file.name}`}
        aria-valuetext={`${clock(seconds)} of ${clock(duration)}`}
        onChange={({ target }) => seek(target.valueAsNumber)}
        style={{ "--played": `${(100 * seconds) / (duration || 1)}%` } as CSSProperties}
        className="seek mx-1 min-w-0 flex-1"
      />
      <span className={`shrink-0 px-1 text-xs tabular-nums ${muted}`}>
        {clock(seconds)} / {clock(duration)}
      </span>
      <IconButton
        small
        icon={isMuted ? "muted" : "sound"}
        label={isMuted ? "Sound on" : "Sound off"}
        className={look}
        onClick={mute}
      />
      {children}
    </>
  );
}

/** The whole box with the controls; on phones that allow only videos, the video with the phone's own. */
function showOnWholeScreen(
  box: RefObject<HTMLElement | null>,
  video: RefObject<(HTMLVideoElement & { webkitEnterFullscreen?: () => void }) | null>,
): void {
  if (!document.fullscreenEnabled) video.current?.webkitEnterFullscreen?.();
  const moved = document.fullscreenElement
    ? document.exitFullscreen()
    : document.fullscreenEnabled && box.current?.requestFullscreen();
  // If the browser refuses, the video stays where it is.
  if (moved) void moved.catch(() => {});
}

/** The address that a player loads. If it does not load, it is loaded once more, with a renewed link. */
function useSource(file: ShownFile) {
  const { link, renew } = useLoadedLink(file.id);
  const [failures, setFailures] = useState(0);
  const onError = ({ currentTarget: media }: SyntheticEvent<HTMLMediaElement>) => {
    if (!link) return;
    setFailures(failures + 1);
    if (failures > 0) return;
    // A link that is still valid is the same again. Without one, the file cannot be played either.
    renew().then(
      () => media.load(),
      () => setFailures(2),
    );
  };
  const isAway = useConnection() !== "up" && !link;
  const problem = isAway
    ? "Not stored on this device."
    : failures > 1
      ? "This cannot be played here."
      : null;
  return { attributes: { src: link?.url, onError }, problem };
}
