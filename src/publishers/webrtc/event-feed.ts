import type { types } from 'mediasoup';
import type { Packet } from '../../core/packet.ts';
import type { Reader } from '../../core/reader.ts';
import type { OutputStream } from '../../core/output-stream.ts';
import type { Stream } from '../../core/stream.ts';
import { readCue } from '../../core/subtitle-cue.ts';
import { toSeconds } from '../../core/timebase.ts';
import type { Codec } from '../../core/track.ts';
import { kilnError } from '../../errors.ts';
import type { MediaWorker } from '../../webrtc/media-worker.ts';

/** Source of a viewer's data channel, until it is released. */
export interface EventOutlet {
  readonly producer: types.DataProducer;
  release(): void;
}

interface Made {
  readonly transport: types.DirectTransport;
  readonly producer: types.DataProducer;
}

interface Fed {
  readonly worker: MediaWorker;
  readonly hidesSubtitles: boolean;
  readonly made: Promise<Made>;
  producer: types.DataProducer | undefined;
  users: number;
}

const LABEL = 'events';
const TEXT: ReadonlySet<Codec> = new Set(['CUE', 'INTERSTITIAL']);

/**
 * Events and subtitles of one output stream as messages of data channels, in JSON: `type` (the codec), `time` (media time in seconds),
 * `date` (wall clock), `target`, `encoding` (`base64`, or `utf-8`) and `data`; of subtitles also `label`, `language`, `duration` in
 * seconds, and `settings`. Viewers of a playlist that hides subtitles get the events alone. Reads the stream only while viewers want
 * them.
 */
export class EventFeed {
  readonly #stream: OutputStream;
  readonly #source: Stream;
  readonly #fed = new Set<Fed>();
  #reader: Reader | undefined;

  /** @param source the stream as it is sent */
  constructor(stream: OutputStream, source: Stream) {
    this.#stream = stream;
    this.#source = source;
  }

  /** Counts one more viewer. @throws mediaUnavailable when the worker dies before that */
  async outlet(worker: MediaWorker, hidesSubtitles: boolean): Promise<EventOutlet> {
    const known = [...this.#fed].find((fed) => fed.worker === worker && fed.hidesSubtitles === hidesSubtitles);
    const fed = known ?? this.#open(worker, hidesSubtitles);
    fed.users++;
    this.#reader ??= this.#source.read({ packet: (packet) => this.#packet(packet) });
    let isReleased = false;
    const release = (): void => {
      if (isReleased) return;
      isReleased = true;
      fed.users--;
      if (fed.users === 0) this.#close(fed);
    };
    try {
      const { producer } = await fed.made;
      return { producer, release };
    } catch (error) {
      release();
      throw worker.closed ? kilnError('mediaUnavailable') : error;
    }
  }

  /** Idempotent. */
  close(): void {
    for (const fed of [...this.#fed]) this.#close(fed);
  }

  #open(worker: MediaWorker, hidesSubtitles: boolean): Fed {
    const fed: Fed = { worker, hidesSubtitles, made: produce(worker), producer: undefined, users: 0 };
    this.#fed.add(fed);
    fed.made.then(
      ({ producer, transport }) => {
        if (!this.#fed.has(fed)) return transport.close();
        fed.producer = producer;
        transport.observer.once('close', () => this.#close(fed));
      },
      () => this.#close(fed),
    );
    return fed;
  }

  #close(fed: Fed): void {
    if (!this.#fed.delete(fed)) return;
    fed.producer = undefined;
    // a caller that waits for it gets the reason
    fed.made.then(
      ({ transport }) => transport.close(),
      () => undefined,
    );
    if (this.#fed.size > 0) return;
    this.#reader?.close();
    this.#reader = undefined;
  }

  #packet(packet: Packet): void {
    const { track, pts } = packet;
    const content = contentOf(packet);
    if (content === undefined) return;
    const time = toSeconds(pts, track.timebase);
    const arrived = this.#stream.input.arrival.at(time);
    const message = JSON.stringify({
      type: track.codec,
      time,
      ...(Number.isFinite(arrived) && { date: new Date(arrived).toISOString() }),
      ...content,
    });
    const isSubtitle = track.type === 'subtitle';
    for (const { producer, hidesSubtitles } of this.#fed)
      if (producer?.closed === false && !(isSubtitle && hidesSubtitles)) producer.send(message);
  }
}

/** Fields of a message that differ between events and subtitles; undefined for media. */
function contentOf({ track, duration, data }: Packet): object | undefined {
  if (track.type === 'data') {
    const isText = TEXT.has(track.codec);
    const encoded = { encoding: isText ? 'utf-8' : 'base64', data: data.toString(isText ? 'utf8' : 'base64') };
    return { ...(track.target && { target: track.target }), ...encoded };
  }
  const cue = track.type === 'subtitle' ? readCue(data) : undefined;
  if (track.type !== 'subtitle' || cue === undefined) return undefined;
  const { publicName: label, language, timebase } = track;
  return {
    label,
    ...(language && { language }),
    duration: toSeconds(duration, timebase),
    ...(cue.settings && { settings: cue.settings }),
    encoding: 'utf-8',
    data: cue.text,
  };
}

async function produce(worker: MediaWorker): Promise<Made> {
  const transport = await worker.createDirectTransport();
  return { transport, producer: await transport.produceData({ label: LABEL }) };
}
