import { EventEmitter } from 'node:events';
import type { types } from 'mediasoup';
import type { OutputStream } from '../../core/output-stream.ts';
import type { AudioTrack, MediaTrack } from '../../core/track.ts';
import { isEstimated } from '../../webrtc/extensions.ts';
import { LayerControl } from './layer-control.ts';
import type { PlayableRendition, Selection } from './selection.ts';

interface ChoiceEvents {
  /** The viewer gets another rendition, or has asked and gets this one. */
  rendition: [rendition: PlayableRendition, auto: boolean];
  /** The worker refuses, which it does only when it is gone. */
  fault: [error: unknown];
}

export interface SentMedia {
  readonly kind: 'video' | 'audio';
  readonly consumer: types.Consumer;
  /** Tracks that can be sent. For video, the consumer's layers, lowest first. */
  readonly tracks: readonly MediaTrack[];
  /** Goes on with another track, where there are several audio tracks. */
  readonly select?: ((track: AudioTrack) => void) | undefined;
  /** Calls once, before the next key frame is sent, where the worker does not wait for one itself. */
  readonly beforeKey?: ((act: () => void) => void) | undefined;
}

export interface Sent {
  readonly transport: types.WebRtcTransport;
  readonly media: readonly SentMedia[];
  readonly reports: boolean;
}

/**
 * Chooses the rendition of a playlist for one viewer. With `auto`, mediasoup chooses the layer of the video by its estimate of
 * the network, and the rendition follows it; without, the viewer's request counts whatever the network carries. The audio is that
 * of the rendition; among renditions with the same video, that of the requested rendition.
 */
export class RenditionChoice extends EventEmitter<ChoiceEvents> {
  readonly #selection: Selection;
  readonly #video: SentMedia | undefined;
  readonly #audio: SentMedia | undefined;
  /** Set where the video has several. */
  readonly #layers: LayerControl | undefined;
  /** mediasoup has an estimate of the network to the viewer. */
  readonly #estimated: boolean;
  readonly #paused = new Map<types.Consumer, boolean>();
  readonly #pausing = new Set<types.Consumer>();
  #auto: boolean;
  /** The requested rendition; with auto only its audio counts. */
  #wanted: PlayableRendition;
  #current: PlayableRendition;
  #started = false;
  /** The viewer waits for the result of a request. */
  #owed = false;

  constructor(stream: OutputStream, selection: Selection, { transport, media, reports }: Sent) {
    super();
    this.#selection = selection;
    this.#video = media.find(({ kind }) => kind === 'video');
    this.#audio = media.find(({ kind }) => kind === 'audio');
    this.#estimated = reports && this.#video !== undefined && isEstimated(this.#video.consumer.rtpParameters);
    this.#auto = selection.playlist.options.webrtcAutoAbr && this.#estimated;
    [this.#wanted] = selection.renditions as [PlayableRendition];
    this.#current = this.#wanted;
    if (this.#video !== undefined && this.#video.tracks.length > 1) {
      this.#layers = new LayerControl(stream, transport, this.#video);
      this.#layers.on('layer', () => this.#settle());
      this.#layers.on('fault', (error) => this.emit('fault', error));
    }
  }

  /** The rendition that the viewer gets. */
  get current(): PlayableRendition {
    return this.#current;
  }

  get auto(): boolean {
    return this.#auto;
  }

  async start(): Promise<void> {
    this.#started = true;
    this.#layers?.start();
    await this.#apply();
  }

  /**
   * Applies a viewer's request; an unknown name counts as none. The event `rendition` follows when it is done.
   * @param auto undefined: off with a name, else unchanged
   */
  async request(name: string | undefined, auto: boolean | undefined): Promise<void> {
    const named = this.#selection.renditions.find((rendition) => rendition.name === name);
    if (named !== undefined) this.#wanted = named;
    else if (auto === false) this.#wanted = this.#current;
    this.#auto = this.#estimated && (auto ?? (named === undefined && this.#auto));
    this.#owed = true;
    if (this.#started) await this.#apply();
  }

  close(): void {
    this.#layers?.close();
    this.removeAllListeners();
  }

  async #apply(): Promise<void> {
    const { video } = this.#wanted;
    if (this.#video !== undefined) this.#pause(this.#video, !this.#auto && video === undefined);
    if (this.#auto) await this.#layers?.follow(this.#audioOnly() === undefined);
    else if (video !== undefined) await this.#layers?.fix(video);
    this.#settle();
  }

  /** Updates the rendition and the audio after a change of the video. */
  #settle(): void {
    const rendition = this.#sentRendition();
    if (rendition === undefined) return;
    const changed = rendition !== this.#current;
    this.#current = rendition;
    const audio = this.#audio;
    if (audio !== undefined) {
      if (rendition.audio !== undefined) audio.select?.(rendition.audio);
      this.#pause(audio, rendition.audio === undefined);
    }
    const pending = !this.#auto && rendition.video?.id !== this.#wanted.video?.id;
    if (!changed && (pending || !this.#owed)) return;
    if (!pending) this.#owed = false;
    this.emit('rendition', rendition, this.#auto);
  }

  /** The rendition whose video is sent; undefined while that is unknown. */
  #sentRendition(): PlayableRendition | undefined {
    if (this.#video === undefined || (!this.#auto && this.#wanted.video === undefined)) return this.#wanted;
    if (this.#layers === undefined) return this.#withVideo(this.#video.tracks[0]);
    const { sent } = this.#layers;
    if (sent !== undefined) return this.#withVideo(sent);
    return this.#auto && this.#layers.starved ? this.#audioOnly() : undefined;
  }

  #withVideo(track: MediaTrack | undefined): PlayableRendition | undefined {
    return this.#best(this.#selection.renditions.filter(({ video }) => video?.id === track?.id));
  }

  /** The rendition for a network that carries no video at all, if the playlist has one. */
  #audioOnly(): PlayableRendition | undefined {
    return this.#best(this.#selection.renditions.filter(({ video }) => video === undefined));
  }

  /** Picks among renditions with the same video the requested one, or one with the most similar audio. */
  #best(renditions: readonly PlayableRendition[]): PlayableRendition | undefined {
    const { audio } = this.#wanted;
    return (
      renditions.find((rendition) => rendition === this.#wanted) ??
      renditions.find((rendition) => rendition.audio?.id === audio?.id) ??
      renditions.find((rendition) => rendition.audio?.language === audio?.language) ??
      renditions[0]
    );
  }

  /** Pauses or resumes once the worker has done the request before. */
  #pause({ consumer, beforeKey }: SentMedia, paused: boolean): void {
    this.#paused.set(consumer, paused);
    if (!this.#started || this.#pausing.has(consumer)) return;
    this.#pausing.add(consumer);
    const work = async () => {
      while (consumer.paused !== this.#paused.get(consumer)) {
        if (this.#paused.get(consumer) === true) await consumer.pause();
        else if (beforeKey === undefined) await consumer.resume();
        else await this.#resumeAtKey(consumer, beforeKey);
      }
      this.#pausing.delete(consumer);
    };
    work().catch((error: unknown) => this.emit('fault', error));
  }

  /** Resumes with the next key frame, unless the viewer is to get no video by then. */
  #resumeAtKey(consumer: types.Consumer, beforeKey: NonNullable<SentMedia['beforeKey']>): Promise<void> {
    return new Promise((done) => {
      beforeKey(() => {
        const isWanted = !consumer.closed && this.#paused.get(consumer) === false;
        done(isWanted ? consumer.resume() : undefined);
      });
    });
  }
}
