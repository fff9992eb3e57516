import { id3Bytes, id3Private } from '../../containers/id3.ts';
import type { AudioForm } from '../../containers/mpegts/audio-syntax.ts';
import type { Track } from '../../core/track.ts';
import type { FaultLog } from '../../log/log.ts';
import { streamTrackId } from '../intake/track-id.ts';
import { AudioLane } from '../mpegts-intake/audio-lane.ts';
import { PullError } from '../pull/error.ts';
import type { SegmentReader, SegmentReaderEvents } from './segment-reader.ts';

const OWNER = 'com.apple.streaming.transportStreamTimestamp';
/** Tags may have a cover. */
const MAX_TAG_BYTES = 1024 * 1024;
/** Bytes behind the tags that tell the form. */
const FORM_BYTES = 2;
/** A timestamp of 33 bits in eight bytes. */
const STAMP_BYTES = 8;
const STAMP_BITS = 33;
const ID = streamTrackId('audio', 0);

export interface PackedAudioOptions {
  readonly faults: FaultLog;
  readonly events: SegmentReaderEvents;
}

/** Whether a segment is one of packed audio: it begins with a tag. */
export function beginsPackedAudio(bytes: Buffer): boolean {
  return bytes.toString('latin1', 0, 3) === 'ID3';
}

/**
 * Reads segments of packed audio (RFC 8216 section 3.4): AAC in ADTS, MP3, AC-3 or E-AC-3 behind an ID3 tag with the time of its first
 * sample.
 */
export class PackedAudioReader implements SegmentReader {
  readonly #options: PackedAudioOptions;
  /** Bytes of the tags, while they are not whole. */
  #head: Buffer | undefined = Buffer.alloc(0);
  #time: number | undefined;
  #form: AudioForm | undefined;
  #lane: AudioLane | undefined;

  constructor(options: PackedAudioOptions) {
    this.#options = options;
  }

  get tracks(): readonly Track[] {
    return this.#lane?.track === undefined ? [] : [this.#lane.track];
  }

  push(bytes: Buffer): void {
    if (this.#head === undefined) return this.#take(bytes, undefined);
    this.#head = Buffer.concat([this.#head, bytes]);
    for (let size = id3Bytes(this.#head); size !== 0; size = id3Bytes(this.#head)) {
      if ((size ?? 0) > MAX_TAG_BYTES) throw new PullError(`a tag of its audio has more than ${MAX_TAG_BYTES} bytes`);
      if (size === undefined || size > this.#head.length) return;
      const stamp = id3Private(this.#head.subarray(0, size), OWNER);
      if (stamp?.length === STAMP_BYTES) this.#time = Number(BigInt.asUintN(STAMP_BITS, stamp.readBigUInt64BE()));
      this.#head = this.#head.subarray(size);
    }
    if (this.#head.length < FORM_BYTES) return;
    const rest = this.#head;
    this.#head = undefined;
    if (this.#time === undefined) throw new PullError('its segments of audio have no timestamps (ID3 PRIV frames)');
    this.#open(formOf(rest));
    this.#take(rest, this.#time);
  }

  flush(): void {
    this.#lane?.lost();
    this.#head = Buffer.alloc(0);
    this.#time = undefined;
  }

  lost(): void {
    this.flush();
  }

  restart(): void {
    this.flush();
  }

  #take(bytes: Buffer, pts: number | undefined): void {
    this.#lane?.pes({ pts }, bytes);
  }

  #open(form: AudioForm): void {
    if (form === this.#form) return;
    const { events, faults } = this.#options;
    this.#form = form;
    this.#lane = new AudioLane(
      { pid: 0, kind: 'audio', form },
      { id: ID, index: 0 },
      undefined,
      { unit: (unit) => events.unit(unit), fault: (reason) => faults.count(reason) },
      true,
    );
    events.tracks({ video: [], audio: [0] }, new Set([ID]));
  }
}

function formOf(bytes: Buffer): AudioForm {
  const [first = 0, second = 0] = bytes;
  if (first === 0x0b && second === 0x77) return 'AC-3';
  // the layer is 0 in ADTS alone
  if (first === 0xff && (second & 0xf6) === 0xf0) return 'ADTS';
  if (first === 0xff && (second & 0xe0) === 0xe0) return 'MPEG audio';
  throw new PullError('its segments of audio are neither AAC, MP3 nor AC-3');
}
