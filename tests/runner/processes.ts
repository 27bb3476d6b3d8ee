import { readdirSync, readFileSync } from "node:fs";

const SAMPLE_MS = 250;
/** Clock ticks per second in /proc, the same on all platforms that Linux supports. */
const TICKS = 100;

/**
 * Measures the CPU seconds of a process and of all that it starts, until the returned function is
 * called. What a process uses between the last look and its end is missed. Zero without /proc.
 */
export function measureCpu(root: number): () => number {
  const seconds = new Map<number, number>();
  const members = new Set([root]);
  const look = () => {
    for (const { pid, parent, cpu } of processes()) {
      if (members.has(parent)) members.add(pid);
      if (members.has(pid)) seconds.set(pid, cpu);
    }
  };
  const timer = setInterval(look, SAMPLE_MS);
  return () => {
    clearInterval(timer);
    return [...seconds.values()].reduce((sum, each) => sum + each, 0);
  };
}

/** All that a process has started and that still runs. None without /proc. */
export function descendantsOf(root: number): number[] {
  const members = new Set([root]);
  for (const { pid, parent } of read()) if (members.has(parent)) members.add(pid);
  members.delete(root);
  return [...members];
}

let last: { at: number; found: ReturnType<typeof read> } = { at: 0, found: [] };

/** All processes, by their number: parents come first. Read once for all that measure. */
function processes() {
  if (performance.now() - last.at > SAMPLE_MS / 2) last = { at: performance.now(), found: read() };
  return last.found;
}

function read(): { pid: number; parent: number; cpu: number }[] {
  try {
    const pids = readdirSync("/proc").map(Number).filter(Boolean);
    return pids.toSorted((one, other) => one - other).flatMap(readProcess);
  } catch {
    // Not Linux.
    return [];
  }
}

function readProcess(pid: number): { pid: number; parent: number; cpu: number }[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const cpu = (Number(fields[11]) + Number(fields[12])) / TICKS;
    return [{ pid, parent: Number(fields[1]), cpu }];
  } catch {
    // It has ended meanwhile.
    return [];
  }
}
