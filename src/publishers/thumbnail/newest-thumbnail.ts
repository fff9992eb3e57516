import type { Application } from '../../core/application.ts';
import type { OutputStream } from '../../core/output-stream.ts';
import type { ImageCodec } from '../../core/track.ts';
import { kilnError } from '../../errors.ts';
import type { Thumbnails } from './thumbnails.ts';

const FORMATS = new Map<string, readonly [codec: ImageCodec, type: string]>([
  ['jpg', ['JPEG', 'image/jpeg']],
  ['jpeg', ['JPEG', 'image/jpeg']],
  ['png', ['PNG', 'image/png']],
  ['webp', ['WEBP', 'image/webp']],
  ['avif', ['AVIF', 'image/avif']],
]);

/** Thumbnails that a publisher keeps, by output stream. */
export type ThumbnailsOf = ReadonlyMap<OutputStream, Thumbnails>;

/** Codec and MIME type of a file extension. @throws thumbnailExtension */
export function formatOf(extension: string): readonly [codec: ImageCodec, type: string] {
  const format = FORMATS.get(extension);
  if (format === undefined) throw kilnError('thumbnailExtension');
  return format;
}

export interface FoundThumbnail {
  readonly output: OutputStream;
  /** MIME type. */
  readonly type: string;
  readonly image: Buffer;
}

/**
 * Newest thumbnail of an output stream on this node, in the format of a file extension. A viewer may come before the first one is
 * encoded, and waits for it.
 * @param limitMs longest wait
 * @throws as `newestThumbnail`
 */
export async function awaitedThumbnail(
  all: ThumbnailsOf,
  application: Application,
  stream: string,
  extension: string,
  limitMs: number,
): Promise<FoundThumbnail> {
  const output = application.outputs.get(stream);
  const thumbnails = output && all.get(output);
  if (thumbnails !== undefined) {
    const [codec] = formatOf(extension);
    if (output?.resting === true && thumbnails.newest(codec) === undefined) output.emit('wanted');
    await thumbnails.appears(codec, limitMs);
  }
  return newestThumbnail(all, application, stream, extension);
}

/**
 * Newest thumbnail of an output stream on this node, in the format of a file extension.
 * @throws thumbnailStreamNotFound, thumbnailNotStarted, thumbnailExtension, thumbnailMissing
 */
export function newestThumbnail(
  all: ThumbnailsOf,
  application: Application,
  stream: string,
  extension: string,
): FoundThumbnail {
  const output = application.outputs.get(stream);
  if (output === undefined) throw kilnError('thumbnailStreamNotFound');
  const thumbnails = all.get(output);
  if (thumbnails === undefined) throw kilnError('thumbnailNotStarted');
  const [codec, type] = formatOf(extension);
  if (output.resting) output.emit('wanted');
  const image = thumbnails.newest(codec);
  if (image === undefined) throw kilnError('thumbnailMissing');
  return { output, type, image };
}
