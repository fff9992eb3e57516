import type { types } from 'mediasoup';
import type { RtpCodec } from './codecs.ts';

/**
 * Codecs that mediasoup knows by another name. It has no H.265; of AV1 it reads a header extension and never the payload, so that
 * H.265 which is declared as AV1 passes as it is. All other code uses the codec's own name.
 */
const DECLARED: Readonly<Record<string, string>> = { 'video/H265': 'video/AV1' };

/** Returns the media type for mediasoup. */
export function declared(mimeType: string): string {
  return DECLARED[mimeType] ?? mimeType;
}

/** Makes the note by which `demandSame` knows a producer's own codec. */
export function ownCodec({ mimeType }: RtpCodec): types.AppData {
  return { mimeType };
}

/** @throws Error when a producer has another codec than its consumer is to have, which mediasoup cannot see */
export function demandSame({ appData }: types.Producer, { mimeType }: RtpCodec): void {
  if (appData.mimeType !== mimeType) throw new Error(`a producer of ${String(appData.mimeType)} has no ${mimeType}`);
}

/** Gives the codec of a consumer's parameters its own name and the parameters that were agreed, for descriptions. */
export function named(
  parameters: types.RtpParameters,
  { mimeType, parameters: agreed }: RtpCodec,
): types.RtpParameters {
  const other = declared(mimeType);
  if (other === mimeType) return parameters;
  const codecs = parameters.codecs.map((codec) => {
    if (codec.mimeType !== other) return codec;
    return { ...codec, mimeType: mimeType as types.RtpCodecParameters['mimeType'], parameters: agreed };
  });
  return { ...parameters, codecs };
}
