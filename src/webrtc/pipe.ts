import type { types } from 'mediasoup';
import type { RtpCodec } from './codecs.ts';
import type { LiveProducer } from './live-producers.ts';
import type { MediaWorker } from './media-worker.ts';

/** A producer that is fed by workers alone. */
export interface Pipe {
  readonly producer: types.Producer;
  /** Idempotent. */
  close(): void;
}

/**
 * Leads what a publisher sends to a producer whose consumers use exactly the payload types of `codec`, on whichever
 * worker: over a UDP port of loopback at each end, past this process. Key frames are asked for the other way.
 * @param sources of one codec and one publisher; of a picture the layers, as consumers number them
 * @param cname that of all that one viewer is sent
 * @throws Error when a worker or the publisher has gone
 */
export async function pipe(
  sources: readonly LiveProducer[],
  worker: MediaWorker,
  codec: RtpCodec,
  cname: string,
): Promise<Pipe> {
  const [{ worker: origin, producer: first }] = sources as [LiveProducer];
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
