import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { portsInUse, unusedPorts } from '../../../deploy/cluster/ports.ts';
import { isAlive } from '../../../src/lib/process-usage.ts';

/**
 * Above those that systems give to outgoing connections and to who asks for any (32768 to 60999), and those that media
 * workers take for themselves (10000 to 59999): one of these would be in the way of a server to come.
 */
const FIRST = 61_000;
const COUNT = 4300;

/** A file for each port that a process of the tests was given and may not listen on yet: who has it is written there. */
const FOLDER = join(tmpdir(), `kiln-test-ports-${process.getuid?.() ?? 0}`);
const reserved = new Set<number>();
process.once('exit', () => reserved.forEach((port) => rmSync(join(FOLDER, String(port)), { force: true })));

/** Ports that are free, for TCP and UDP both, and are given to no other test. */
export function freePorts(count: number): number[] {
  return unusedPorts(count, () => {
    const port = anyPort();
    return reserve(port) ? port : undefined;
  });
}

/** An even port that is free as those of `freePorts`, and the next as well. */
export function freePair(): number {
  const used = portsInUse();
  const [first] = unusedPorts(1, () => {
    const even = anyPort() & ~1;
    return !used.has(even + 1) && reserve(even) && reserve(even + 1) ? even : undefined;
  });
  return first as number;
}

function anyPort(): number {
  return FIRST + Math.floor(Math.random() * COUNT);
}

/** @returns false when another process has it, or had it */
function reserve(port: number): boolean {
  const file = join(FOLDER, String(port));
  mkdirSync(FOLDER, { recursive: true });
  try {
    writeFileSync(file, String(process.pid), { flag: 'wx' });
  } catch {
    // that of a process which has ended is for the next one that asks: of two that write it at once both would have the port
    if (!isHeld(file)) rmSync(file, { force: true });
    return false;
  }
  reserved.add(port);
  return true;
}

function isHeld(file: string): boolean {
  try {
    const pid = Number(readFileSync(file, 'utf8'));
    // one that is being written is held, too
    return pid === 0 || isAlive(pid);
  } catch {
    // it is being given back
    return true;
  }
}
