import Type, { type Static } from 'typebox';
import type { NodeIdentity } from '#cluster';
import type { Application } from '../core/application.ts';
import { kilnError, type KilnError } from '../errors.ts';
import type { Logger } from '../log/log.ts';
import { definePeerCall, STREAM_FIELDS } from '../peers/peer-call.ts';
import type { PeerCalls } from '../peers/peer-calls.ts';
import type { OtherNodes } from '../peers/other-nodes.ts';
import { StoredFile, storedOf } from '../recording/finished/entry.ts';
import type { Query, Recorded } from '../recording/finished/recorded-index.ts';
import type { Recordings } from '../recording/finished/recordings.ts';
import { IndexedTrack } from '../recording/journal.ts';
import type { Span } from './query.ts';

const MP4 = 'MP4';
const MPEG_TS = 'MPEG-TS';
/** Containers whose files are played. */
const CONTAINERS = [MP4, MPEG_TS];
/** Codecs that MP4 carries, of those that MPEG-TS does. */
const CARRIED: ReadonlySet<string> = new Set(['H264', 'H265', 'AAC', 'MP3', 'OPUS']);
const PAGE = 500;
/** Pages that one request reads of a node: each is of so many files, or of 50,000 of other streams. */
const MAX_PAGES = 40;
/** Why files are not played, in the words of an answer. */
const UNPLAYED = {
  dump: 'an HLS dump, which plays from its folder',
  webm: 'a recording as WebM, whose VP8 or VP9 has no place in the MP4 that viewers get',
  empty: 'a recording without media',
  gone: 'a recording that is neither on the disk nor in a bucket',
  stored: 'a recording as MPEG-TS in a bucket alone, all of which would have to be read for its index',
  codecs: 'a recording as MPEG-TS without a codec that MP4 carries',
} as const;
/** Kinds of an answer of another node. */
const MAX_KINDS = Object.keys(UNPLAYED).length;

const PlayableFile = Type.Object({
  id: Type.String(),
  recordId: Type.String(),
  /** Milliseconds since the epoch. */
  startTime: Type.Number(),
  /** Duration in milliseconds. */
  recordTime: Type.Number(),
  /** Bytes. */
  size: Type.Number(),
  tracks: Type.Optional(Type.Array(IndexedTrack)),
  /** Set where it is in a bucket alone. */
  stored: Type.Optional(StoredFile),
  /** Absent: MP4. */
  container: Type.Optional(Type.String()),
});

/** Lists the files of an output stream that a node can play. */
const FILES = definePeerCall(
  'playback/files',
  Type.Object({
    ...STREAM_FIELDS,
    start: Type.Optional(Type.Number()),
    end: Type.Optional(Type.Number()),
    cursor: Type.Optional(Type.String()),
    /** Containers that the asking node plays. Absent, as of older ones: MP4. */
    containers: Type.Optional(Type.Array(Type.String())),
  }),
  Type.Object({
    files: Type.Array(PlayableFile),
    cursor: Type.Optional(Type.String()),
    /** Why others of the page are not played; absent, as of older nodes: not known. */
    unplayed: Type.Optional(Type.Array(Type.String({ maxLength: 200 }))),
  }),
);
type Page = Static<typeof FILES.answer>;

/** A finished recording that can be played. */
export interface RecordedFile extends Static<typeof PlayableFile> {
  /** Node that has it, or knows of it; undefined: this one. */
  readonly node: NodeIdentity | undefined;
}

export interface RecordedFilesOptions {
  readonly recordings: Pick<Recordings, 'page'>;
  /** undefined on a node that runs alone. */
  readonly others: OtherNodes | undefined;
  readonly calls: PeerCalls;
  readonly log: Logger;
}

/** Finished recordings of output streams on all nodes. */
export class RecordedFiles {
  readonly #options: RecordedFilesOptions;
  /** Reason for which a node did not answer its last call, by the node's id. */
  readonly #silent = new Map<string, string>();

  constructor(options: RecordedFilesOptions) {
    this.#options = options;
    options.calls.answer(FILES, async ({ vhost, app, containers = [MP4], ...asked }) => {
      const { files, ...rest } = await this.#own({ vhost, app }, asked);
      return { files: files.filter(({ container = MP4 }) => containers.includes(container)), ...rest };
    });
  }

  /**
   * Finds the files of a time, in the order of their starts.
   * @param limit of files
   * @returns whether all nodes have answered, and why other files of the time are not played
   * @throws playbackTooMany, playbackTooWide
   */
  async find(application: Application, stream: string, span: Span, limit: number) {
    const { others } = this.#options;
    const names = { vhost: application.vhost.name, app: application.name };
    const found: RecordedFile[] = [];
    const unplayed = new Set<string>();
    let isComplete = true;
    const collect = async (
      node: NodeIdentity | undefined,
      ask: (cursor: string | undefined) => Promise<Page | undefined>,
    ) => {
      let cursor: string | undefined;
      for (let pages = 0; ; pages++) {
        if (pages === MAX_PAGES) throw kilnError('playbackTooWide');
        const page = await ask(cursor);
        if (page === undefined) return void (isComplete = false);
        for (const kind of page.unplayed?.slice(0, MAX_KINDS) ?? []) unplayed.add(kind);
        found.push(...page.files.map((file) => ({ ...file, node })));
        if (found.length > limit) throw kilnError('playbackTooMany', limit);
        if (page.cursor === undefined) return;
        ({ cursor } = page);
      }
    };
    const ofOther = (node: NodeIdentity) => async (cursor: string | undefined) => {
      const asked = { ...names, stream, ...span, containers: CONTAINERS, ...(cursor !== undefined && { cursor }) };
      const { answer, error } = (await others?.askOne(node, FILES, asked)) ?? {};
      this.#note(node, answer === undefined ? (error?.message ?? 'no answer') : undefined);
      return answer;
    };
    await Promise.all([
      collect(undefined, (cursor) => this.#own(names, { stream, ...span, cursor })),
      ...(others?.present ?? []).map((node) => collect(node, ofOther(node))),
    ]);
    found.sort((one, other) => one.startTime - other.startTime || (one.id < other.id ? -1 : 1));
    return { files: found, isComplete, unplayed: [...unplayed] };
  }

  async #own(
    application: { readonly vhost: string; readonly app: string },
    query: Omit<Query, 'limit'>,
  ): Promise<Page> {
    const { recorded, cursor } = await this.#options.recordings.page(application, { ...query, limit: PAGE });
    const { start = -Infinity } = query;
    const files = recorded.filter(isPlayable).map(({ id, entry }) => {
      const { id: recordId, startTime, recordTime, size, tracks, container } = entry;
      const stored = storedOf(entry);
      return {
        ...{ id, recordId, startTime, recordTime, size },
        ...(tracks !== undefined && { tracks }),
        ...(stored !== undefined && { stored }),
        ...(container !== MP4 && { container }),
      };
    });
    const unplayed = new Set(recorded.flatMap((one) => unplayedFor(one) ?? []));
    return {
      files: files.filter(({ startTime, recordTime }) => startTime + recordTime > start),
      unplayed: [...unplayed],
      ...(cursor !== undefined && { cursor }),
    };
  }

  /** Logs why a node does not answer, once for each reason. */
  #note(node: NodeIdentity, reason: string | undefined): void {
    if (reason === undefined) return void this.#silent.delete(node.id);
    if (this.#silent.get(node.id) === reason) return;
    this.#silent.set(node.id, reason);
    this.#options.log.warn({ node: node.id, reason }, 'a node did not answer: its recordings cannot be played');
  }
}

export function isPlayable(recorded: Recorded): boolean {
  return unplayedFor(recorded) === undefined;
}

/** Why a file is not played, in the words of an answer; undefined for one that is. */
function unplayedFor({ entry }: Recorded): string | undefined {
  const { container, dump, isLocal, recordTime, tracks } = entry;
  if (dump !== undefined) return UNPLAYED.dump;
  if (!CONTAINERS.includes(container)) return UNPLAYED.webm;
  if (recordTime <= 0) return UNPLAYED.empty;
  const isStored = storedOf(entry) !== undefined;
  if (!isLocal && !isStored) return UNPLAYED.gone;
  if (container === MP4) return undefined;
  if (!isLocal) return UNPLAYED.stored;
  return tracks === undefined || isCarried(tracks) ? undefined : UNPLAYED.codecs;
}

/** Error of a time of which nothing is played: playbackUnplayed, playbackNothing, or playbackUnknown while a node does not answer. */
export function nothingOf({
  isComplete,
  unplayed,
}: {
  readonly isComplete: boolean;
  readonly unplayed: readonly string[];
}): KilnError {
  if (!isComplete) return kilnError('playbackUnknown');
  return unplayed.length > 0 ? kilnError('playbackUnplayed', unplayed) : kilnError('playbackNothing');
}

/** Whether a file is played in parts, each with an index of its own. */
export function hasParts({ container }: { readonly container?: string | undefined }): boolean {
  return container === MPEG_TS;
}

/** Whether MP4 carries what is seen of a file, or else what is heard of it. */
function isCarried(tracks: readonly IndexedTrack[]): boolean {
  const leading = tracks.some(({ type }) => type === 'video') ? 'video' : 'audio';
  return tracks.some(({ type, codec }) => type === leading && CARRIED.has(codec));
}
