import { createSocket } from 'node:dgram';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Below those that systems give to outgoing connections: one of these would be in the way of a server to come. */
const FIRST = 12_000;
const COUNT = 20_000;

/** A file for each port that a process of the tests was given and may not listen on yet: who has it is written there. */
const FOLDER = join(tmpdir(), `kiln-test-ports-${process.getuid?.() ?? 0}`);
const reserved = new Set<number>();
process.once('exit', () => reserved.forEach((port) => rmSync(join(FOLDER, String(port)), { force: true })));

/** Ports that were free, for TCP and UDP both, a moment ago: all held at once, so that none comes twice. */
export async function freePorts(count: number): Promise<number[]> {
  const held: { port: number; release: () => Promise<unknown> }[] = [];
  while (held.length < count) {
    const port = FIRST + Math.floor(Math.random() * COUNT);
    if (!reserve(port)) continue;
    const server = createServer();
    const listens = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false)).listen(port, '0.0.0.0', () => resolve(true));
    });
    if (!listens) continue;
    const socket = createSocket('udp4');
    const bound = await new Promise<boolean>((resolve) => {
      socket.once('error', () => resolve(false)).bind(port, '0.0.0.0', () => resolve(true));
    });
    const release = async () => {
      await new Promise((resolve) => server.close(resolve));
      if (bound) await new Promise<void>((resolve) => socket.close(resolve));
    };
    if (bound) held.push({ port, release });
    else await release();
  }
  await Promise.all(held.map(({ release }) => release()));
  return held.map(({ port }) => port);
}

/** @returns false when a process that lives has it */
function reserve(port: number): boolean {
  const file = join(FOLDER, String(port));
  mkdirSync(FOLDER, { recursive: true });
  try {
    writeFileSync(file, String(process.pid), { flag: 'wx' });
  } catch {
    if (isHeld(file)) return false;
    writeFileSync(file, String(process.pid));
  }
  reserved.add(port);
  return true;
}

function isHeld(file: string): boolean {
  try {
    const pid = Number(readFileSync(file, 'utf8'));
    // one that is being written is held, too
    return pid === 0 || process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
