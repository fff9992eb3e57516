import { setImmediate as turn } from 'node:timers/promises';
import Type, { type Static } from 'typebox';
import type { Cluster, NodeIdentity } from '#cluster';
import { KilnError, kilnError } from '../../../errors.ts';
import { definePeerCall, STREAM_FIELDS, type PeerCall } from '../../../peers/peer-call.ts';
import type { PeerCalls } from '../../../peers/peer-calls.ts';
import { journalLines, readJournal, type PastSegment } from './journal.ts';
import type { RootCalls } from '../../../core/disk-calls.ts';
import { FILE_NAME, type Page, type RunFiles } from './run-files.ts';
import type { StreamNames } from './stream-folder.ts';

/** Players wait for this when a stream begins. */
const LIST_TIMEOUT_MS = 2500;
const READ_TIMEOUT_MS = 5000;
/** Pages of a node, of some thousand segments each. */
const MAX_PAGES = 100;
/** Errors of a call that may be answered later. */
const NO_ANSWER: ReadonlySet<string> = new Set(['ownerUnreachable', 'ownerSilent']);

const Run = { ...STREAM_FIELDS, run: Type.String({ pattern: '^[A-Za-z0-9]{1,16}$' }) };

/** Gets a page of the segments of a run that a node has on its disk: lines for each media playlist, one after the other. */
const LIST = definePeerCall(
  'kept',
  Type.Object({ ...Run, after: Type.Optional(Type.String()) }),
  Type.Object({
    lists: Type.Array(Type.Object({ name: Type.String(), bytes: Type.Integer({ minimum: 0 }) })),
    last: Type.Optional(Type.String()),
  }),
);
/** Gets a file of a run. */
const FILE = definePeerCall('kept-file', Type.Object({ ...Run, file: Type.String() }), Type.Null());

/** A node that has segments of a run on its disk. */
export interface Holder {
  /** Whether the node can still be asked. */
  isThere(): boolean;
  /** @throws KilnError */
  read(name: string): Promise<Buffer>;
}

/** Segments of a run that another node has on its disk. */
export interface Elsewhere extends Holder {
  /** By the file name of the media playlist, oldest first. */
  readonly lists: ReadonlyMap<string, readonly PastSegment[]>;
  /** The node, without the segments. */
  readonly holder: Holder;
  /** Lists what was not listed in time; absent for a node that has listed all. Never rejects. */
  readonly more?: () => Promise<Elsewhere>;
}

/** Finds the segments of a run that other nodes have. Never rejects. */
export type FindElsewhere = (names: StreamNames, run: string) => Promise<readonly Elsewhere[]>;

export function findElsewhere(calls: PeerCalls, cluster: Pick<Cluster, 'self' | 'nodes'>): FindElsewhere {
  const there = () => cluster.nodes().filter(({ id, state }) => id !== cluster.self.id && state !== 'lost');
  return async ({ vhost, app, stream, kind }, run) => {
    const asked = { vhost, app, stream, run };
    const found = await Promise.all(
      there().map(({ id }) => {
        const node = (): NodeIdentity => {
          const current = there().find((one) => one.id === id);
          if (current === undefined) throw kilnError('ownerUnreachable');
          return current;
        };
        const holder: Holder = {
          isThere: () => there().some((one) => one.id === id),
          read: async (file) =>
            (await calls.callForBytes(node(), named(FILE, kind), { ...asked, file }, READ_TIMEOUT_MS)).bytes,
        };
        return listed(holder, undefined, async (after, timeoutMs) => {
          const request = { ...asked, ...(after !== undefined && { after }) };
          const { answer, bytes } = await calls.callForBytes(node(), named(LIST, kind), request, timeoutMs);
          return { lists: await toLists(answer, bytes), last: answer.last };
        });
      }),
    );
    return found.filter(({ lists, more }) => lists.size > 0 || more !== undefined);
  };
}

/** Gets pages of a node as long as there is time. @param after as of `RunFiles.page` @param page throws KilnError */
async function listed(
  holder: Holder,
  after: string | undefined,
  page: (after: string | undefined, timeoutMs: number) => Promise<Page>,
): Promise<Elsewhere> {
  const lists = new Map<string, PastSegment[]>();
  const end = performance.now() + LIST_TIMEOUT_MS;
  let last = after;
  try {
    for (let pages = 0; pages < MAX_PAGES; pages++) {
      const left = end - performance.now();
      if (left <= 0) return { ...holder, holder, lists, more: () => listed(holder, last, page) };
      const next = await page(last, left);
      for (const [list, segments] of next.lists) lists.set(list, [...(lists.get(list) ?? []), ...segments]);
      if (next.last === undefined) break;
      last = next.last;
    }
    return { ...holder, holder, lists };
  } catch (error) {
    if (!(error instanceof KilnError)) throw error;
    // others know nothing of the stream
    if (!NO_ANSWER.has(error.code)) return { ...holder, holder, lists };
    return { ...holder, holder, lists, more: () => listed(holder, last, page) };
  }
}

/** Files of a run that other nodes may read. */
type KeptFiles = Pick<RunFiles, 'page' | 'read'>;

/** Has files read when it is the turn of their disk. Who asks while that hangs may ask again later. */
export function inTurn(files: KeptFiles, calls: RootCalls): KeptFiles {
  const take = async <T>(call: () => Promise<T>): Promise<T> => {
    if (calls.hangs) throw kilnError('ownerSilent');
    return await calls.take(call);
  };
  return {
    page: (after, onFault) => take(() => files.page(after, onFault)),
    read: (name) => take(() => files.read(name)),
  };
}

/**
 * Answers other nodes about the runs on the disk of this one.
 * @param filesOf finds the files of a run; undefined where players do not rewind
 */
export function answerElsewhere(
  calls: PeerCalls,
  kind: string,
  filesOf: (names: StreamNames, run: string) => KeptFiles | undefined,
): void {
  const found = (asked: Static<typeof LIST.request>): KeptFiles => {
    const files = filesOf({ ...asked, kind }, asked.run);
    if (files === undefined) throw kilnError('fileNotFound');
    return files;
  };
  calls.answerBytes(named(LIST, kind), async (asked) => {
    const { lists, last } = await found(asked).page(asked.after, ignored);
    const journals = Array.from(lists, ([name, segments]) => ({
      name,
      lines: Buffer.from(journalLines(segments)),
    }));
    return {
      answer: {
        lists: journals.map(({ name, lines }) => ({ name, bytes: lines.length })),
        ...(last !== undefined && { last }),
      },
      bytes: Buffer.concat(journals.map(({ lines }) => lines)),
    };
  });
  calls.answerBytes(named(FILE, kind), async (asked) => {
    const files = found(asked);
    if (!FILE_NAME.test(asked.file)) throw kilnError('fileNotFound');
    const bytes = await files.read(asked.file).catch((cause: unknown) => {
      throw Object.assign(kilnError('fileNotFound'), { cause });
    });
    return { answer: null, bytes };
  });
}

/** Journals that cannot be read have no segments for other nodes. */
function ignored(): void {}

/** Names a call for one kind of HLS. */
function named<C extends PeerCall>(call: C, kind: string): C {
  return { ...call, name: `${kind}/${call.name}` };
}

async function toLists({ lists }: Static<typeof LIST.answer>, bytes: Buffer): Promise<Elsewhere['lists']> {
  const read = new Map<string, PastSegment[]>();
  let at = 0;
  for (const { name, bytes: length } of lists) {
    read.set(name, readJournal(bytes.subarray(at, at + length).toString()));
    at += length;
    // each has thousands of segments
    await turn();
  }
  return read;
}
