import type { types } from 'mediasoup';
import { receiverCapabilities, type RtpCodec } from './codecs.ts';

export interface ConsumerOptions {
  readonly mid: string;
  readonly codec: RtpCodec;
  /** As agreed with the peer, under the numbers by which it knows them. */
  readonly extensions: readonly types.RtpHeaderExtension[];
}

/**
 * Makes a paused consumer of a producer, whose packets have the header extensions that are agreed under the peer's numbers. mediasoup
 * reads those of the producer within the call, so one producer serves peers with any numbers.
 */
export function consume(
  transport: types.Transport,
  producer: types.Producer,
  { mid, codec, extensions }: ConsumerOptions,
): Promise<types.Consumer> {
  const idOf = (uri: string): number | undefined => extensions.find((agreed) => agreed.uri === uri)?.preferredId;
  const parameters = producer.consumableRtpParameters;
  const headerExtensions = parameters.headerExtensions?.map((own) => ({ ...own, id: idOf(own.uri) ?? own.id }));
  const value = { ...parameters, headerExtensions };
  // mediasoup has no option for it: in front of the getter of all producers
  Object.defineProperty(producer, 'consumableRtpParameters', { value, configurable: true });
  try {
    return transport.consume({
      producerId: producer.id,
      rtpCapabilities: receiverCapabilities(codec, extensions),
      paused: true,
      mid,
      enableRtx: true,
    });
  } finally {
    Reflect.deleteProperty(producer, 'consumableRtpParameters');
  }
}
