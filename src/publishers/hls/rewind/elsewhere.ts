import { setImmediate as turn } from 'node:timers/promises';
import Type, { type Static } from 'typebox';
import type { Cluster } from '#cluster';
import { KilnError, kilnError } from '../../../errors.ts';
import { definePeerCall, STREAM_FIELDS, type PeerCall } from '../../../peers/peer-call.ts';
import type { PeerCalls } from '../../../peers/peer-calls.ts';
import { journalLine, readJournal, type PastSegment } from './journal.ts';
import { FILE_NAME, type RunFiles } from './run-files.ts';
import type { StreamNames } from './stream-folder.ts';

/** Players wait for this when a stream begins. */
const LIST_TIMEOUT_MS = 2500;
const READ_TIMEOUT_MS = 5000;

const Run = { ...STREAM_FIELDS, run: Type.String({ pattern: '^[A-Za-z0-9]{1,16}$' }) };

/** Gets the segments of a run that a node has on its disk: a journal of each media playlist, one after the other. */
const LIST = definePeerCall(
  'kept',
  Type.Object(Run),
  Type.Object({ lists: Type.Array(Type.Object({ name: Type.String(), bytes: Type.Integer({ minimum: 0 }) })) }),
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
}

/** Finds the segments of a run that other nodes have. Never rejects: nodes that do not answer in time have none. */
export type FindElsewhere = (names: StreamNames, run: string) => Promise<readonly Elsewhere[]>;

export function findElsewhere(calls: PeerCalls, cluster: Pick<Cluster, 'self' | 'nodes'>): FindElsewhere {
  return async ({ vhost, app, stream, kind }, run) => {
    const there = () => cluster.nodes().filter(({ id, state }) => id !== cluster.self.id && state !== 'lost');
    const asked = { vhost, app, stream, run };
    const found = await Promise.all(
      there().map(async (node): Promise<Elsewhere | undefined> => {
        const current = () => there().find(({ id }) => id === node.id);
        try {
          const { answer, bytes } = await calls.callForBytes(node, named(LIST, kind), asked, LIST_TIMEOUT_MS);
          const holder: Holder = {
            isThere: () => current() !== undefined,
            read: async (file) => {
              const now = current();
              if (now === undefined) throw kilnError('ownerUnreachable');
              return (await calls.callForBytes(now, named(FILE, kind), { ...asked, file }, READ_TIMEOUT_MS)).bytes;
            },
          };
          return { ...holder, holder, lists: await toLists(answer, bytes) };
        } catch (error) {
          if (!(error instanceof KilnError)) throw error;
          return undefined;
        }
      }),
    );
    return found.filter((one) => one !== undefined && one.lists.size > 0) as Elsewhere[];
  };
}

/**
 * Answers other nodes about the runs on the disk of this one.
 * @param filesOf finds the files of a run; undefined where players do not rewind
 */
export function answerElsewhere(
  calls: PeerCalls,
  kind: string,
  filesOf: (names: StreamNames, run: string) => RunFiles | undefined,
): void {
  const found = (asked: Static<typeof LIST.request>): RunFiles => {
    const files = filesOf({ ...asked, kind }, asked.run);
    if (files === undefined) throw kilnError('fileNotFound');
    return files;
  };
  calls.answerBytes(named(LIST, kind), async (asked) => {
    const journals: { readonly name: string; readonly lines: Buffer }[] = [];
    for (const [name, segments] of await found(asked).load(ignored))
      journals.push({ name, lines: Buffer.from(segments.map((segment) => journalLine(segment)).join('')) });
    return {
      answer: { lists: journals.map(({ name, lines }) => ({ name, bytes: lines.length })) },
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
