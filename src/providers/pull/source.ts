import type { Link } from '../../core/links.ts';
import type { Packet } from '../../core/packet.ts';
import type { Playlist } from '../../core/playlist.ts';
import type { Connection } from '../../core/source.ts';
import type { Track } from '../../core/track.ts';
import type { Logger } from '../../log/log.ts';
import type { LocalClock } from '../intake/local-clock.ts';

/** Receiver of a pulled stream. */
export interface SourceSink {
  /** Called before the first packet, and after each change. */
  tracks(tracks: readonly Track[], playlists: readonly Playlist[]): void;
  packet(packet: Packet): void;
  received(bytes: number): void;
  lost(packets: number): void;
  /** Reports a problem with the origin to the operator: code and text of an alert. */
  trouble(code: string, description: string): void;
  /** Called once nothing follows, but not after `close()`. */
  end(reason: string): void;
}

/** Connection to an origin, which has described its stream. */
export interface PullSource {
  readonly connection: Connection | undefined;
  /** Absent where its transport does not tell how it fares. */
  readonly link?: Link | undefined;
  /** Latest fault in the received data; undefined when there was none. */
  readonly trouble?: string | undefined;
  /** Resolves when it plays. @throws Error */
  play(sink: SourceSink): Promise<void>;
  close(): void;
}

export interface SourceOptions {
  readonly log: Logger;
  /** Clock that continues across connections. */
  readonly clock: LocalClock;
  /** Silence after which the source ends; undefined: never. */
  readonly silenceMs: number | undefined;
  /** Whether tracks are aligned by arrival, without sender reports; RTSP only. */
  readonly ignoresReports: boolean;
  /** Aborts when the source is not wanted before it is open: nothing stays open then. An open one ends by its `close`. */
  readonly signal: AbortSignal;
}

/** Connects to the origin of a URL. @throws Error when it cannot be reached, has no such stream, or the signal aborts */
export type OpenSource = (url: string, options: SourceOptions) => Promise<PullSource>;

/** Longest wait of a source for something to play: less than that of the pull, which does not know the reason. Milliseconds. */
export const FIRST_MEDIA_MS = 9000;
