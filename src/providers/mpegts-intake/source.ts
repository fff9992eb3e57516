import { CLOCK } from '../../containers/mpegts/stream-types.ts';
import { Timeline } from '../../core/timeline.ts';
import type { FaultLog, Logger } from '../../log/log.ts';
import { Intake } from '../intake/intake.ts';
import { TrackWriter, type TrackSink } from '../intake/track-writer.ts';
import type { AudioMapItem } from './audio-lane.ts';
import { TsReader } from './reader.ts';

/** Longest interval of key frames, for sources that are joined between two of them. */
export const VIDEO_WAIT_MS = 5000;
/** Most missing messages that continuity counters reveal: two have at most 14 packets, and the counters 16 values. */
const COUNTED_MESSAGES = 2;

export interface TsSourceOptions {
  /** Input stream, which is not closed. */
  readonly sink: TrackSink;
  /**
   * Settings that all MPEG-TS providers have (docs/compatibility.md#configuration). `audioMap` is in the order of audio
   * in the PMT.
   */
  readonly config: {
    readonly timestampMode: 'Auto' | 'ZeroBased' | 'Original';
    /** 0: never. */
    readonly packetSilenceTimeoutMs: number;
    readonly audioMap: readonly AudioMapItem[];
  };
  readonly log: Logger;
  readonly faults: FaultLog;
  /** Called at a gap in the transport stream, for protocols that do not count losses themselves. */
  readonly onGap?: () => void;
  /** Called once, when the source sends nothing playable or falls silent; nothing is written after it. */
  readonly onFailure: (reason: string) => void;
}

/**
 * Converts MPEG-TS, from any protocol, to packets of an input stream:
 *
 *     const source = new TsSource({ sink: input, config, log, faults, onFailure });
 *     source.push(bytes); // a datagram, a message, a chunk: any portion of the transport stream
 *     source.lost(); // for a known loss that counters may not show
 *     source.flush(); // at the end, when the protocol says that nothing follows
 *     source.close();
 *
 * Bytes are neither kept nor counted as received: the provider does that. The stream goes live once all tracks of the PMT
 * have begun or the wait for them is over; later tracks are added. Ids of tracks are stable as long as their
 * PIDs are in the PMT: even ids for video, odd ids for audio, from 512 on for events (`ID3v2`, `SCTE35`, `KLV`).
 */
export class TsSource {
  readonly #reader: TsReader;
  readonly #writer: TrackWriter;
  readonly #intake: Intake;
  /** Arrival of the current bytes, in milliseconds of the monotonic clock. */
  #arrival = 0;
  #closed = false;

  constructor(options: TsSourceOptions) {
    const { sink, config, log, faults, onGap } = options;
    this.#writer = new TrackWriter({
      sink,
      clock: CLOCK,
      timeline: new Timeline(CLOCK, config.timestampMode !== 'Original', () => this.#arrival),
      onUnsteady: () => this.#intake.fail('the configuration of the stream changes too often'),
    });
    this.#intake = new Intake({
      writer: this.#writer,
      silenceMs: config.packetSilenceTimeoutMs,
      videoWaitMs: VIDEO_WAIT_MS,
      tracks: () => this.#reader.tracks,
      onFailure: (reason) => {
        this.close();
        options.onFailure(reason);
      },
    });
    this.#reader = new TsReader({
      audioMap: config.audioMap,
      log,
      faults,
      isFile: false,
      ...(onGap && { onGap }),
      onHeard: () => this.#intake.heard(),
      onTracks: (announced, ids) => {
        if (this.#intake.live && ids.size > 0) this.#writer.keep(ids);
        this.#intake.announce(announced);
      },
      onUnit: (unit) => {
        if (!this.#closed) this.#intake.unit(unit);
      },
    });
  }

  /** @param data is not kept: its memory may be used again */
  push(data: Buffer): void {
    if (this.#closed) return;
    this.#arrival = performance.now();
    this.#reader.push(data);
  }

  lost(): void {
    this.#reader.lost();
  }

  /** Messages of up to seven packets are missing here. */
  lostMessages(messages: number): void {
    if (messages > COUNTED_MESSAGES) this.lost();
  }

  flush(): void {
    if (!this.#closed) this.#reader.flush();
  }

  close(): void {
    this.#closed = true;
    this.#intake.close();
  }
}
