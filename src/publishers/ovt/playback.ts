import type { Duplex } from 'node:stream';
import { delayed } from '../../core/delayed-stream.ts';
import type { GopCache } from '../../core/gop-cache.ts';
import { KeyGate } from '../../core/key-gate.ts';
import type { Packet } from '../../core/packet.ts';
import { DEFAULT_LIMITS, type Consumer, type Reader } from '../../core/reader.ts';
import type { OutputStream } from '../../core/output-stream.ts';
import type { Stream } from '../../core/stream.ts';
import type { Track } from '../../core/track.ts';
import { rescale } from '../../core/timebase.ts';
import { mediaTypeOf } from '../../protocols/ovt/tracks.ts';
import { FrameWriter } from '../../protocols/ovt/media.ts';
import { wireForm, type WireForm, type WireForms } from '../../protocols/ovt/wire-form.ts';

export interface PlaybackOptions {
  /** Receiver: another node, or an OVT client. */
  readonly kind: 'relay' | 'ovt';
  /** Session id in the packets. */
  readonly session: number;
  /** Delay of everything sent, in milliseconds. */
  readonly delayMs: number;
  readonly forms: WireForms;
  /** Selects the tracks to send; returns the same objects while they are unchanged. */
  readonly select: (tracks: readonly Track[]) => readonly Track[];
  /**
   * Cached packets to send first, enough to decode everything from a time on, in seconds; Infinity is the last key frame. Video
   * that the cache lacks starts with its next key frame.
   */
  readonly start?: { readonly cache: GopCache; readonly from: number };
  /** Called before the first packet of other tracks. */
  readonly onTracks: (tracks: readonly Track[]) => void;
  readonly onSent: (bytes: number) => void;
  readonly onEnd: (reason: string) => void;
}

/** Above so many unsent bytes the receiver is slow, and packets wait in the reader within its limits. */
const MAX_UNSENT_BYTES = 512 * 1024;

interface Form {
  readonly track: Track;
  /** The track that the receiver knows: may differ for events. */
  readonly as: Track;
  /** Undefined for a track that is not sent. */
  readonly form: WireForm | undefined;
  /** Ticks subtracted from its timestamps. */
  readonly shift: number;
}

/** Sends an output stream as frames of OVT. */
export class Playback implements Consumer {
  readonly #stream: Duplex;
  readonly #output: OutputStream;
  /** The output, possibly delayed. */
  readonly #source: Stream;
  readonly #options: PlaybackOptions;
  readonly #writer: FrameWriter;
  readonly #reader: Reader;
  readonly #put = (bytes: Buffer): void => void this.#stream.write(bytes);
  readonly #onTracks = (): void => this.#tracksChanged();
  readonly #onDrain = (): void => this.#resume();
  readonly #forms = new Map<number, Form>();
  readonly #gate = new KeyGate();
  #selected: readonly Track[];
  #stalledSince: number | undefined;
  /** The receiver has yet to learn of other tracks. */
  #changed = false;

  constructor(stream: Duplex, output: OutputStream, options: PlaybackOptions) {
    this.#stream = stream;
    this.#output = output;
    this.#source = delayed(output, options.delayMs);
    this.#options = options;
    this.#writer = new FrameWriter(options.session);
    this.#selected = options.select(this.#source.tracks);
    if (options.start !== undefined) this.#begin(options.start);
    const queue = output.queue(options.kind, { seconds: DEFAULT_LIMITS.seconds / 2 });
    this.#reader = this.#source.read(this, DEFAULT_LIMITS, queue);
    this.#source.on('tracks', this.#onTracks);
    stream.on('drain', this.#onDrain);
  }

  packet(packet: Packet): boolean {
    if (this.#changed && this.#source.tracks.includes(packet.track)) this.#tell();
    if (!this.#gate.waits || this.#gate.passes(packet)) this.#send(packet);
    const keepsUp = this.#stream.writableLength <= MAX_UNSENT_BYTES;
    if (!keepsUp) this.#stalledSince ??= performance.now();
    return keepsUp;
  }

  /** Time since the receiver stopped reading, in milliseconds; 0 while it reads. */
  get stalledMs(): number {
    return this.#stalledSince === undefined ? 0 : performance.now() - this.#stalledSince;
  }

  /** Packets dropped because the receiver was slow. */
  get dropped(): number {
    return this.#reader.dropped;
  }

  /** Whether the stream has ended for good. */
  get isOver(): boolean {
    return this.#output.closed && this.#output.input.continuity.over;
  }

  /** Whether this node, which relays the stream, receives nothing of it at present. */
  get isInterrupted(): boolean {
    return this.#output.interrupted;
  }

  /** Idempotent. */
  stop(): void {
    this.#reader.close();
    this.#source.off('tracks', this.#onTracks);
    this.#stream.off('drain', this.#onDrain);
  }

  close(reason: string): void {
    this.stop();
    this.#options.onEnd(reason);
  }

  #begin({ cache, from }: { readonly cache: GopCache; readonly from: number }): void {
    for (const track of this.#selected) this.#gate.lose({ track });
    cache.replayFrom(from, (packet) => {
      if (this.#gate.passes(packet)) this.#send(packet);
    });
  }

  #send(packet: Packet): void {
    const { track, duration } = packet;
    const key = packet.key !== false;
    const { form, as, shift } = this.#formOf(track);
    if (form === undefined) return;
    const [dts, pts] = as === track ? [packet.dts - shift, packet.pts - shift] : timesIn(as, packet);
    const pieces = form.pieces(packet);
    let size = 0;
    for (const piece of pieces) size += piece.length;
    const mediaType = mediaTypeOf(track);
    const { bitstream, packetType } = form;
    this.#stream.cork();
    const sent = this.#writer.write(
      { track: as.id, pts, dts, duration, mediaType, key, bitstream, packetType },
      pieces,
      size,
      this.#put,
    );
    this.#stream.uncork();
    this.#options.onSent(sent);
  }

  #formOf(track: Track): Form {
    const known = this.#forms.get(track.id);
    if (known?.track === track) return known;
    const isEvents = track.type === 'data' && this.#options.forms === 'framed';
    const sent = this.#selected.find(({ id, type }) => (isEvents ? type === 'data' : id === track.id));
    const form = sent && wireForm(track, this.#options.forms);
    // nodes get the owner's timestamps, so a stream is the same through whichever node it comes
    const shift = this.#options.forms === 'plain' ? (this.#output.run?.shift(track.timebase) ?? 0) : 0;
    const made = { track, as: isEvents ? (sent ?? track) : track, form, shift };
    this.#forms.set(track.id, made);
    return made;
  }

  #resume(): void {
    this.#stalledSince = undefined;
    this.#reader.resume();
  }

  /** Packets in the reader belong to the previous tracks, and are sent first. */
  #tracksChanged(): void {
    this.#changed = true;
    if (this.#reader.queuedBytes === 0) this.#tell();
  }

  #tell(): void {
    this.#changed = false;
    const before = this.#selected;
    this.#selected = this.#options.select(this.#source.tracks);
    this.#forms.clear();
    const isSame = before.length === this.#selected.length && before.every((track, i) => track === this.#selected[i]);
    if (!isSame) this.#options.onTracks(this.#selected);
  }
}

/** Decoding and presentation time of a packet, in ticks of another track. */
function timesIn({ timebase }: Track, { track, dts, pts }: Packet): readonly [dts: number, pts: number] {
  return [rescale(dts, track.timebase, timebase), rescale(pts, track.timebase, timebase)];
}
