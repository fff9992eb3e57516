import { EventEmitter } from 'node:events';
import type { types } from 'mediasoup';
import type { OutputStream } from '../../core/stream.ts';
import type { MediaTrack } from '../../core/track.ts';
import { bitrateOf } from './ladder.ts';

interface LayerEvents {
  /** Another layer is sent, or none. */
  layer: [];
  fault: [error: unknown];
}

export interface Layered {
  readonly consumer: types.Consumer;
  /** Lowest first. */
  readonly tracks: readonly MediaTrack[];
}

/** The least that mediasoup can be told. */
const LEAST_BITRATE = 30_000;
/** What a layer is allowed for, over its average: mediasoup takes its peaks for what it needs. */
const MARGIN = 1.5;
/**
 * A viewer begins with the best layer that needs no more than this, and gets better ones after a while: by then a way
 * that does not even carry this much is known. One that carries more would be found out slowly, and that of a viewer
 * who reports nothing never, which is why the best layer is taken to be carried (`initialBitrate`).
 */
const FIRST_BITRATE = 1_000_000;
const FIRST_MS = 2000;

/** What the way to a new viewer is taken to carry, in bits per second: any of the layers. */
export function initialBitrate(stream: OutputStream, layers: readonly MediaTrack[]): number {
  const most = Math.max(0, ...layers.map((track) => bitrateOf(stream, track)));
  return Math.max(FIRST_BITRATE, Math.round(most * MARGIN));
}

/**
 * The layers of one viewer's video: which of them mediasoup may choose from, or has to send.
 *
 * mediasoup sends the best layer, up to the preferred one, that its estimate carries, and nothing where it carries none.
 * What is to be sent in any case is therefore told as what the way carries at least.
 */
export class LayerControl extends EventEmitter<LayerEvents> {
  readonly #stream: OutputStream;
  readonly #transport: types.WebRtcTransport;
  readonly #consumer: types.Consumer;
  readonly #tracks: readonly MediaTrack[];
  #following = false;
  #began = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(stream: OutputStream, transport: types.WebRtcTransport, { consumer, tracks }: Layered) {
    super();
    this.#stream = stream;
    this.#transport = transport;
    this.#consumer = consumer;
    this.#tracks = tracks;
    consumer.on('layerschange', () => {
      this.#began ||= this.sent !== undefined;
      this.emit('layer');
    });
  }

  /** The track that is sent; undefined while none is. */
  get sent(): MediaTrack | undefined {
    const layer = this.#consumer.currentLayers?.spatialLayer;
    return layer === undefined ? undefined : this.#tracks[layer];
  }

  /** Nothing is sent any more: the way carries not even the lowest layer. */
  get starved(): boolean {
    return this.#began && this.sent === undefined;
  }

  /** Called when the viewer is connected. */
  start(): void {
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (this.#following) this.#prefer().catch((error: unknown) => this.emit('fault', error));
    }, FIRST_MS);
  }

  /**
   * Leaves the choice to mediasoup.
   * @param always the lowest layer is sent even where the way does not carry it
   */
  async follow(always: boolean): Promise<void> {
    this.#following = true;
    await this.#guarantee(always ? this.#tracks[0] : undefined);
    await this.#prefer();
  }

  /** Sends one layer, or the next best while that one is not there, whatever the way carries. */
  async fix(track: MediaTrack): Promise<void> {
    this.#following = false;
    await this.#guarantee(track);
    await this.#consumer.setPreferredLayers({ spatialLayer: this.#tracks.findIndex(({ id }) => id === track.id) });
  }

  close(): void {
    clearTimeout(this.#timer);
    this.removeAllListeners();
  }

  async #prefer(): Promise<void> {
    const first = this.#tracks.findLastIndex((track) => bitrateOf(this.#stream, track) <= FIRST_BITRATE);
    const spatialLayer = this.#timer === undefined ? this.#tracks.length - 1 : Math.max(0, first);
    await this.#consumer.setPreferredLayers({ spatialLayer });
  }

  async #guarantee(track: MediaTrack | undefined): Promise<void> {
    const needed = track === undefined ? 0 : Math.round(bitrateOf(this.#stream, track) * MARGIN);
    await this.#transport.setMinOutgoingBitrate(Math.max(LEAST_BITRATE, needed));
  }
}
