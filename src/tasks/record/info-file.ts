import { randomBytes } from 'node:crypto';
import { lstat, open, readFile, rename, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { localTime } from '../../core/local-time.ts';
import { pause } from '../pause.ts';
import { PathError } from './paths.ts';

/** One file of a recording. */
export interface FileInfo {
  readonly transactionId: string;
  readonly id: string;
  readonly metadata?: string;
  readonly vhost: string;
  readonly app: string;
  readonly stream: string;
  readonly filePath: string;
  readonly recordBytes: number;
  /** Milliseconds. */
  readonly recordTime: number;
  readonly sequence: number;
  /** The recording was stopped with it. */
  readonly lastSequence: boolean;
  /** Milliseconds since the epoch. */
  readonly createdTime: number;
  readonly startTime: number;
  readonly finishTime: number;
}

const HEAD = '<?xml version="1.0" encoding="utf-8"?>\n<files>\n';
const END = '</files>\n';
/** A lock that is older was left by a process that has died. */
const LOCK_MS = 10_000;
const LOCK_AGAIN_MS = 20;
const NEVER = new AbortController().signal;

/** Those who append to a file in this process, one after the other. */
const turns = new Map<string, Promise<void>>();

/**
 * Adds an entry to an info file (facts/08-recording-push-dump.md), which is whole at any moment.
 * @throws PathError when there is another file of that name; what the system says
 */
export async function appendInfo(path: string, info: FileInfo): Promise<void> {
  const before = turns.get(path) ?? Promise.resolve();
  const { promise: turn, resolve } = Promise.withResolvers<void>();
  turns.set(path, turn);
  await before;
  try {
    await append(path, info);
  } finally {
    if (turns.get(path) === turn) turns.delete(path);
    resolve();
  }
}

async function append(path: string, info: FileInfo): Promise<void> {
  const unlock = await lock(`${path}.lock`);
  try {
    const before = await present(path);
    const temporary = join(dirname(path), `tmp_${randomBytes(16).toString('hex')}`);
    const file = await open(temporary, 'wx');
    try {
      await file.writeFile(before + entry(info) + END);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } finally {
    await unlock();
  }
}

/** All of it but for its end. */
async function present(path: string): Promise<string> {
  try {
    if (!(await lstat(path)).isFile()) throw new PathError(`the info file is no file: ${path}`);
    const text = await readFile(path, 'utf8');
    const end = text.lastIndexOf('</files>');
    if (end < 0) throw new PathError(`the info file is another file: ${path}`);
    return text.slice(0, end);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return HEAD;
    throw error;
  }
}

/** Other nodes may share the folder. */
async function lock(path: string): Promise<() => Promise<void>> {
  for (const until = Date.now() + 2 * LOCK_MS; ;) {
    try {
      await (await open(path, 'wx')).close();
      return () => unlink(path).catch(() => undefined);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || Date.now() > until) throw error;
    }
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Date.now() }));
    if (Date.now() - mtimeMs > LOCK_MS) await unlink(path).catch(() => undefined);
    else await pause(LOCK_AGAIN_MS, NEVER);
  }
}

function entry({ filePath, createdTime, startTime, finishTime, ...rest }: FileInfo): string {
  const values = {
    transactionId: rest.transactionId,
    id: rest.id,
    ...(rest.metadata !== undefined && { metadata: rest.metadata }),
    vhost: rest.vhost,
    app: rest.app,
    stream: rest.stream,
    filePath: undefined,
    recordBytes: rest.recordBytes,
    recordTime: rest.recordTime,
    sequence: rest.sequence,
    lastSequence: rest.lastSequence,
    createdTime: localTime(createdTime),
    startTime: localTime(startTime),
    finishTime: localTime(finishTime),
  };
  const lines = Object.entries(values).map(([key, value]) => {
    const text = value === undefined ? `<![CDATA[${filePath.replaceAll(']]>', ']]]]><![CDATA[>')}]]>` : escaped(value);
    return `    <${key}>${text}</${key}>\n`;
  });
  return `  <file>\n${lines.join('')}  </file>\n`;
}

function escaped(value: string | number | boolean): string {
  return String(value).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
