import { BoundedMap } from '../lib/bounded-map.ts';
import { shortDigest } from '../lib/short-digest.ts';
import type { Reception } from './figures.ts';
import { readReport, type Report } from './report.ts';
import { StreamQuality, type Source, type StreamNames } from './stream-quality.ts';

/** Streams with figures of their own. */
const MAX_STREAMS = 2000;
/** Sessions whose dropped frames are known, of all streams; players send totals. */
const MAX_SESSIONS = 20_000;

/**
 * Counts reports of players of this node about their playback, by stream and rendition: CMCD (CTA-5004, CTA-5004-B) of HLS, and receiver
 * reports of WebRTC. Only these sums
 * leave the node; ids of sessions stay here, and those of content are not read.
 */
export class QualityReports {
  /** Reports by result, as of `kiln_player_reports_received_total`. */
  readonly counts = { request: 0, event: 0, malformed: 0, unlisted: 0 };
  readonly #streams = new Map<string, StreamQuality>();
  readonly #bySource = new WeakMap<Source, StreamQuality>();
  readonly #dropped = new BoundedMap<string, number>(MAX_SESSIONS);
  readonly #maxStreams: number;

  constructor(maxStreams = MAX_STREAMS) {
    this.#maxStreams = maxStreams;
  }

  /** Streams of which players have reported something, and that have not ended. */
  get streams(): readonly StreamQuality[] {
    this.#forgetEnded();
    return [...this.#streams.values()];
  }

  /**
   * Counts a report about a stream. Never throws: a malformed report is the player's affair.
   * @param text of `carriedReport`, or a line of an event report
   * @param source that plays the stream here
   * @param rendition undefined for a report about none in particular
   */
  take(text: string, mode: 'request' | 'event', source: Source, names: StreamNames, rendition?: string): void {
    const report = readReport(text);
    if (report === undefined) {
      this.counts.malformed++;
      return;
    }
    const stream = this.#of(source, names);
    if (stream === undefined) {
      this.counts.unlisted++;
      return;
    }
    this.counts[mode]++;
    stream.add(report, rendition, this.#droppedSince(report));
  }

  /** Counts how a stream came to one WebRTC viewer. Parameters as of `take`. */
  takeReception(reception: Reception, source: Source, names: StreamNames, rendition?: string): void {
    this.#of(source, names)?.addReception(reception, rendition);
  }

  #of(source: Source, names: StreamNames): StreamQuality | undefined {
    return this.#bySource.get(source) ?? this.#follow(source, names);
  }

  #follow(source: Source, names: StreamNames): StreamQuality | undefined {
    const key = JSON.stringify([names.vhost, names.app, names.stream]);
    const known = this.#streams.get(key);
    if (known?.ended === true) this.#streams.delete(key);
    else if (known !== undefined) return this.#link(source, known);
    if (this.#streams.size >= this.#maxStreams) this.#forgetEnded();
    if (this.#streams.size >= this.#maxStreams) return undefined;
    const stream = new StreamQuality(names);
    this.#streams.set(key, stream);
    return this.#link(source, stream);
  }

  #link(source: Source, stream: StreamQuality): StreamQuality {
    stream.follow(source);
    this.#bySource.set(source, stream);
    return stream;
  }

  /** Frames dropped since the last report of the session; none at the first, which may be of a session that another node knows. */
  #droppedSince({ sid, dfa }: Report): number {
    if (sid === undefined || dfa === undefined) return 0;
    const session = shortDigest(sid);
    const before = this.#dropped.get(session) ?? dfa;
    this.#dropped.set(session, dfa);
    return Math.max(0, dfa - before);
  }

  #forgetEnded(): void {
    for (const [key, stream] of this.#streams) if (stream.ended) this.#streams.delete(key);
  }
}
