import type { types } from 'mediasoup';
import type { RtpCodec } from './codecs.ts';
import { demandSame } from './declared.ts';
import type { LiveProducer } from './live-producers.ts';
import type { MediaWorker } from './media-worker.ts';

/** Producer that the workers feed without this process. */
export interface Pipe {
  readonly producer: types.Producer;
  /** Idempotent. */
  close(): void;
}

/**
 * Forwards a publisher's packets to a producer on any worker, whose consumers use exactly the payload types of `codec`.
 * Packets go between loopback UDP ports of the workers, without passing this process; key frame requests go back.
 * @param sources of one codec and one publisher; of video the layers, in the order in which consumers number them
 * @param cname shared by all media of one viewer
 * @throws Error when a worker or the publisher has ended
 */
export async function pipe(
  sources: readonly LiveProducer[],
  worker: MediaWorker,
  codec: RtpCodec,
  cname: string,
): Promise<Pipe> {
  const [{ worker: origin, producer: first }] = sources as [LiveProducer];
  for (const { producer } of sources) demandSame(producer, codec);
  const transports: types.PipeTransport[] = [];
  const close = (): void => transports.forEach((transport) => transport.close());
  try {
    const out = await origin.createPipeTransport();
    transports.push(out);
    const into = await worker.createPipeTransport();
    transports.push(into);
    await Promise.all([out.connect(endOf(into)), into.connect(endOf(out))]);
    const consumers = new Map<types.Producer, types.Consumer>();
    for (const { producer } of sources) {
      if (!consumers.has(producer)) consumers.set(producer, await out.consume({ producerId: producer.id }));
    }
    const { rtpParameters } = consumers.get(first) as types.Consumer;
    const producer = await worker.produce(into, codec, {
      codecs: rtpParameters.codecs.map((one) =>
        isRetransmission(one) ? one : { ...one, parameters: { ...codec.parameters } },
      ),
      headerExtensions: rtpParameters.headerExtensions,
      encodings: sources.map((source) => encodingOf(source, consumers)),
      rtcp: { cname },
    });
    for (const each of consumers.values()) each.once('producerclose', close);
    return { producer, close };
  } catch (error) {
    close();
    throw error;
  }
}

function encodingOf(
  { producer, encoding }: LiveProducer,
  consumers: ReadonlyMap<types.Producer, types.Consumer>,
): types.RtpEncodingParameters {
  const { ssrc, rtx } = consumers.get(producer)?.rtpParameters.encodings?.[encoding] ?? {};
  return { ssrc, ...(rtx && { rtx }) };
}

function isRetransmission({ mimeType }: types.RtpCodecParameters): boolean {
  return mimeType.toLowerCase().endsWith('/rtx');
}

function endOf({ tuple }: types.PipeTransport): { ip: string; port: number } {
  return { ip: tuple.localAddress, port: tuple.localPort };
}
