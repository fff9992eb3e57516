import { EventEmitter } from 'node:events';
import type { types } from 'mediasoup';
import type { OutputStream } from '../../core/output-stream.ts';
import type { MediaTrack } from '../../core/track.ts';
import { bitrateOf } from './ladder.ts';
import { LayerTrials } from './layer-trials.ts';

interface LayerEvents {
  /** Emitted when another layer is sent, or none. */
  layer: [];
  fault: [error: unknown];
}

export interface Layered {
  readonly consumer: types.Consumer;
  /** Lowest first. */
  readonly tracks: readonly MediaTrack[];
}

/** Least value that mediasoup accepts. */
const LEAST_BITRATE = 30_000;
/** Allowance of a layer over its average bitrate: mediasoup takes its peaks for its need. */
const MARGIN = 1.5;
/**
 * A viewer begins with the best layer that needs no more than this, and gets better ones after a while: by then a network that
 * does not even carry this much is known. To find out a faster network would take long, and never end for a viewer who reports
 * nothing; so the best layer is assumed to be carried (`initialBitrate`).
 */
const FIRST_BITRATE = 1_000_000;
const FIRST_MS = 2000;

/** Assumes the bits per second that the network to a new viewer carries: enough for any of several layers. */
export function initialBitrate(stream: OutputStream, layers: readonly MediaTrack[]): number {
  if (layers.length < 2) return FIRST_BITRATE;
  const most = Math.max(...layers.map((track) => bitrateOf(stream, track)));
  return Math.max(FIRST_BITRATE, Math.round(most * MARGIN));
}

/**
 * Layers of one viewer's video: those that mediasoup may choose from, or has to send.
 *
 * mediasoup sends the best layer, up to the preferred one, that its estimate carries, and nothing where it carries none. A layer
 * that is to be sent in any case is therefore set as the minimum of that estimate.
 */
export class LayerControl extends EventEmitter<LayerEvents> {
  readonly #stream: OutputStream;
  readonly #transport: types.WebRtcTransport;
  readonly #consumer: types.Consumer;
  readonly #tracks: readonly MediaTrack[];
  readonly #trials: LayerTrials;
  #following = false;
  #began = false;
  #started = Infinity;
  #closed = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(stream: OutputStream, transport: types.WebRtcTransport, { consumer, tracks }: Layered) {
    super();
    this.#stream = stream;
    this.#transport = transport;
    this.#consumer = consumer;
    this.#tracks = tracks;
    this.#trials = new LayerTrials(tracks.length);
    consumer.on('layerschange', (layers) => {
      this.#began ||= this.sent !== undefined;
      // the link is not to blame for a layer that has died
      const alive = consumer.score.producerScores[this.#trials.layer] !== 0;
      this.#trials.sent(layers?.spatialLayer ?? -1, this.#following && alive, Date.now());
      this.emit('layer');
      this.#prefer().catch((error: unknown) => this.emit('fault', error));
    });
  }

  get sent(): MediaTrack | undefined {
    const layer = this.#consumer.currentLayers?.spatialLayer;
    return layer === undefined ? undefined : this.#tracks[layer];
  }

  /** True when nothing is sent any more: the network does not carry even the lowest layer. */
  get starved(): boolean {
    return this.#began && this.sent === undefined;
  }

  /** Called when the viewer is connected. */
  start(): void {
    this.#started = Date.now();
  }

  /** Leaves the choice to mediasoup. @param always the lowest layer is sent even where the network does not carry it */
  async follow(always: boolean): Promise<void> {
    this.#following = true;
    await this.#guarantee(always ? this.#tracks[0] : undefined);
    await this.#prefer();
  }

  /** Sends one layer, or the next best while that one is missing, whatever the network carries. */
  async fix(track: MediaTrack): Promise<void> {
    this.#following = false;
    clearTimeout(this.#timer);
    await this.#guarantee(track);
    if (this.#closed) return;
    await this.#consumer.setPreferredLayers({ spatialLayer: this.#tracks.findIndex(({ id }) => id === track.id) });
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.removeAllListeners();
  }

  /** Sets the best layer that mediasoup may choose now, and again when time allows another. */
  async #prefer(): Promise<void> {
    clearTimeout(this.#timer);
    if (!this.#following || this.#closed) return;
    const now = Date.now();
    const times = this.#tracks.map((track, layer) => Math.max(this.#opens(track), this.#trials.from(layer)));
    const closed = times.findIndex((time, layer) => layer > 0 && time > now);
    const next = Math.min(...times.filter((time) => time > now));
    if (next < Infinity) {
      this.#timer = setTimeout(() => {
        this.#prefer().catch((error: unknown) => this.emit('fault', error));
      }, next - now);
    }
    const best = (closed < 0 ? this.#tracks.length : closed) - 1;
    if (this.#consumer.preferredLayers?.spatialLayer === best) return;
    await this.#consumer.setPreferredLayers({ spatialLayer: best });
  }

  /** Time from which a new viewer can get a layer. */
  #opens(track: MediaTrack): number {
    return bitrateOf(this.#stream, track) <= FIRST_BITRATE ? 0 : this.#started + FIRST_MS;
  }

  async #guarantee(track: MediaTrack | undefined): Promise<void> {
    const needed = track === undefined ? 0 : Math.round(bitrateOf(this.#stream, track) * MARGIN);
    await this.#transport.setMinOutgoingBitrate(Math.max(LEAST_BITRATE, needed));
  }
}
