import type { types } from 'mediasoup';
import { kilnError } from '../../errors.ts';
import { offeredCodec, receiverCapabilities } from '../../webrtc/codecs.ts';
import type { MediaWorker } from '../../webrtc/media-worker.ts';
import type { RtpLane } from '../rtp/lane.ts';
import { rtpParameters, type IngestPlan } from './accepted.ts';
import type { Ingest } from './ingest.ts';
import { senderTime } from './sender-time.ts';

export interface ReceptionOptions {
  readonly worker: MediaWorker;
  /** Where the packets come in. */
  readonly transport: types.WebRtcTransport;
  /** Called with the producer of each section. */
  readonly onProducer?: (plan: IngestPlan, producer: types.Producer) => void;
  /** Called when the worker no longer has a section, or does not do what it is asked to. */
  readonly onLost: (reason: string) => void;
}

const SSRC_AT = 8;

/** Media that a worker receives of one peer: a producer for each section, whose packets come to this process. */
export class Reception {
  readonly #options: ReceptionOptions;
  readonly #consumers = new Map<IngestPlan, types.Consumer>();
  #direct: types.DirectTransport | undefined;
  #ingest: Ingest | undefined;
  #closed = false;

  constructor(options: ReceptionOptions) {
    this.#options = options;
  }

  /**
   * Creates the receivers of the peer's packets.
   * @throws mediaUnavailable when it is closed before that; notAcceptable when the worker refuses a plan; Error when the worker ends
   */
  async take(plans: readonly IngestPlan[]): Promise<void> {
    this.#direct = await this.#options.worker.createDirectTransport();
    if (this.#closed) this.#direct.close();
    for (const plan of plans) await this.#take(plan, this.#direct);
  }

  /** Passes packets and sender reports to an ingest, from now on. */
  feed(ingest: Ingest): void {
    this.#ingest = ingest;
    for (const [plan, consumer] of this.#consumers) {
      const lanes = new Map<number, RtpLane>();
      for (const [index, { ssrc }] of (consumer.rtpParameters.encodings ?? []).entries()) {
        const lane = ingest.lanes(plan)[index];
        if (lane !== undefined && ssrc !== undefined) lanes.set(ssrc, lane);
      }
      consumer.on('rtp', (packet) => {
        const lane = lanes.get(packet.readUInt32BE(SSRC_AT));
        if (lane !== undefined) ingest.push(lane, packet);
      });
    }
  }

  requestKeyFrame(plan: IngestPlan): void {
    const { worker, onLost } = this.#options;
    this.#consumers
      .get(plan)
      ?.requestKeyFrame()
      .catch((error: unknown) => {
        // it should fail only with the worker, which ends the reception anyway
        if (!this.#closed && !worker.closed) onLost(`a key frame could not be requested: ${(error as Error).message}`);
      });
  }

  /** Idempotent. */
  close(): void {
    this.#closed = true;
    this.#direct?.close();
  }

  async #take(plan: IngestPlan, direct: types.DirectTransport): Promise<void> {
    const { worker, transport, onProducer, onLost } = this.#options;
    const consumable = offeredCodec(plan.codec, false, 'All');
    const producer = await worker.produce(transport, consumable, rtpParameters(plan)).catch((error: unknown) => {
      throw kilnError('notAcceptable', `${plan.kind}: ${(error as Error).message}`);
    });
    await producer.enableTraceEvent(['sr']);
    const consumer = await direct.consume({
      producerId: producer.id,
      rtpCapabilities: receiverCapabilities(consumable, []),
      pipe: true,
      enableRtx: false,
    });
    if (this.#closed) throw kilnError('mediaUnavailable');
    this.#consumers.set(plan, consumer);
    onProducer?.(plan, producer);
    producer.on('trace', ({ info }) => {
      const { ssrc } = info as { ssrc: number };
      const index = plan.rids.length === 0 ? 0 : producer.score.find((entry) => entry.ssrc === ssrc)?.encodingIdx;
      const taken = index === undefined ? undefined : consumer.rtpParameters.encodings?.[index]?.ssrc;
      if (index !== undefined && taken !== undefined) this.#ingest?.lanes(plan)[index]?.report(senderTime(info, taken));
    });
    consumer.on('producerclose', () => onLost('the media worker lost the stream'));
  }
}
