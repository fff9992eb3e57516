import type { types } from 'mediasoup';
import type { RtpCodec } from '../codecs.ts';
import { declared } from '../declared.ts';
import type { MediaWorker } from '../media-worker.ts';
import type { RtpChannel } from '../rtp-channel.ts';

/** Target of a feed's packets: one producer of one worker. */
export interface Outlet {
  readonly direct: types.DirectTransport;
  readonly producer: types.Producer;
  readonly channel: RtpChannel;
  /** Head of the messages for the producer on the channel. */
  readonly head: Buffer;
}

/** Payload type between here and the worker, which gives each viewer the one it agreed on. */
export const FEED_PAYLOAD_TYPE = 100;

export interface OutletOptions {
  /** SSRCs of the feed's streams: one, or those of the layers of a simulcast, lowest first. */
  readonly ssrcs: readonly number[];
  readonly extensions: readonly types.RtpHeaderExtensionParameters[];
  /** Shared by all media of one peer. */
  readonly cname: string;
}

/** Makes a producer on a worker, whose consumers use the payload types of `codec`. Closed by its transport. */
export async function openOutlet(
  worker: MediaWorker,
  codec: RtpCodec,
  { ssrcs, extensions, cname }: OutletOptions,
): Promise<Outlet> {
  const direct = await worker.createDirectTransport();
  try {
    const { mimeType, clockRate, channels, parameters } = codec;
    const producer = await worker.produce(direct, codec, {
      codecs: [
        {
          mimeType: declared(mimeType) as types.RtpCodecParameters['mimeType'],
          clockRate,
          channels,
          parameters: { ...parameters },
          payloadType: FEED_PAYLOAD_TYPE,
        },
      ],
      encodings: ssrcs.map((ssrc) => ({ ssrc })),
      headerExtensions: [...extensions],
      rtcp: { cname },
    });
    return { direct, producer, channel: worker.rtp, head: worker.rtp.headOf(producer) };
  } catch (error) {
    direct.close();
    throw error;
  }
}
