import type { Grant } from '../../../access/grant.ts';
import type { HlsPublisherConfig } from '../../../config/model.ts';
import type { MasterTemplate } from '../master/master-template.ts';
import type { Text } from './text.ts';
import type { SessionTerms } from './token.ts';

/** Media of one file, in buffers that follow each other. */
export interface Media {
  readonly kind: 'part' | 'segment' | 'init';
  /** `ts`: audio and video in MPEG-TS; `subtitle`: WebVTT. */
  readonly type: 'video' | 'audio' | 'ts' | 'subtitle';
  readonly body: readonly Buffer[];
  /** Makes the body where that takes too long for one turn: `body` is read after it resolves. */
  write?(): Promise<void> | undefined;
}

/** Response to a file request; `starting`: there is nothing to send yet. */
export type FileAnswer = Media | ChunklistAnswer | typeof STARTING;

export interface ChunklistAnswer {
  readonly kind: 'chunklist';
  readonly text: Text;
  /** Ends with the part or segment that the request named: later responses may be the same. Otherwise it is the newest state. */
  readonly asNamed: boolean;
}

export const STARTING = { kind: 'starting' } as const;

/** Registers a function to call when the client leaves. */
export type OnLeft = (cancel: () => void) => void;

/**
 * Holds a request until the promise that `wait` makes is settled.
 * @param most limit of held requests on the client's connection; a small default when not given
 * @throws tooManyWaiting
 */
export type Hold = <T>(wait: (onLeft: OnLeft) => Promise<T>, most?: number) => Promise<T>;

export interface Viewer {
  /** Start of its session, in milliseconds since the epoch. */
  readonly createdTime: number;
  sent(bytes: number, now: number): void;
}

export interface Master {
  readonly text: Text;
  /** undefined when the player is not counted. */
  readonly viewer: Viewer | undefined;
}

export interface MasterRequest {
  /** Name of the playlist's file, without extension. */
  readonly file: string;
  /** Query of the player's URL, without `?`, and without `start` where players rewind. */
  readonly query: string;
  /** Time at which the player wants to start, in milliseconds since the epoch. */
  readonly start?: number | undefined;
  /** Name of the manifest that steers the player, with its query; undefined where it has no choice. */
  readonly steering?: string | undefined;
  /** False for a HEAD request, which is not counted. */
  readonly plays: boolean;
  /** Path of the children, where the player asked under other names than those of the stream. */
  readonly base?: string | undefined;
  /** Terms with the openings of `grant`. */
  readonly terms: SessionTerms;
  /** Owned by the player's session, which keeps it or hands it over; without a session the caller ends it. */
  readonly grant: Grant;
  /** Aborted when the player leaves, which is not counted then. */
  readonly signal: AbortSignal;
  /** Arrival of the request, in milliseconds since the epoch. */
  readonly since: number;
  readonly hold: Hold;
}

/** Delivery directives of a chunklist request (RFC 8216bis 6.2.5, docs/compatibility.md#hls). */
export interface Directives {
  /** Hold the answer until this segment is there, or with `part` that part of it. */
  readonly msn: number | undefined;
  readonly part: number | undefined;
  readonly skip: boolean;
  readonly legacy: boolean;
  /** With the past, where there is one. */
  readonly rewinds: boolean;
}

/** HLS of one output stream, packaged on any node. */
export interface PlayedStream {
  readonly stream: PlayedFiles;
  readonly viewers: PlayedViewers;
}

/** Playlists and media of a stream. Answers synchronously what is available. */
export interface PlayedFiles {
  /** True when nothing more comes; another request may find the stream elsewhere. */
  readonly ended: boolean;
  readonly config: HlsPublisherConfig;
  /**
   * Master playlist for any player; undefined while there is nothing to play yet.
   * @param start time at which the player starts, in milliseconds since the epoch; undefined for the live edge
   * @param signal aborted when the player leaves
   * @throws fileNotFound, streamNotFound, streamInterrupted, tooManyWaiting, clientGone
   */
  template(
    file: string,
    start: number | undefined,
    signal: AbortSignal,
  ): MasterTemplate | undefined | Promise<MasterTemplate | undefined>;
  /**
   * Answers a request for a child file.
   * @param viewer undefined when it is not counted
   * @throws fileNotFound, playlistDirective, playlistOverdue, tooManyWaiting, streamInterrupted
   */
  file(name: string, directives: Directives, hold: Hold, viewer?: Viewer): FileAnswer | Promise<FileAnswer>;
}

export interface PlayedViewers {
  /**
   * Answers with a master playlist for one player, and counts the player from then on. Holds the request until every rendition has
   * media; undefined when there was nothing to play by the end of that.
   * @throws fileNotFound, streamNotFound, tooManyConnections, tooManyWaiting, playlistSessionRefused, sessionExists, clientGone
   */
  master(asked: MasterRequest): Master | undefined | Promise<Master | undefined>;
  /**
   * Finds the player of a token; undefined when it is not counted.
   * @throws playlistSessionRefused, playlistSessionOver, tooManyConnections
   */
  admit(token: string): Viewer | undefined | Promise<Viewer | undefined>;
  /** Counts bytes sent to a player, counted or not. */
  sent(bytes: number, viewer: Viewer | undefined): void;
}
