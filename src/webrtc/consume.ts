import type { types } from 'mediasoup';
import { receiverCapabilities, type RtpCodec } from './codecs.ts';
import { demandSame } from './declared.ts';

export interface ConsumerOptions {
  readonly mid: string;
  readonly codec: RtpCodec;
  /** Agreed header extensions, with the peer's identifiers. */
  readonly extensions: readonly types.RtpHeaderExtension[];
}

/**
 * Makes a paused consumer whose packets carry header extensions under the peer's identifiers. mediasoup reads the
 * producer's identifiers within the call, so that one producer serves peers with any identifiers.
 */
export function consume(
  transport: types.Transport,
  producer: types.Producer,
  { mid, codec, extensions }: ConsumerOptions,
): Promise<types.Consumer> {
  demandSame(producer, codec);
  const idOf = (uri: string): number | undefined => extensions.find((agreed) => agreed.uri === uri)?.preferredId;
  const parameters = producer.consumableRtpParameters;
  const headerExtensions = parameters.headerExtensions?.map((own) => ({ ...own, id: idOf(own.uri) ?? own.id }));
  const value = { ...parameters, headerExtensions };
  // mediasoup has no option for this: an own property hides the getter of the class
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
