import type { Obu } from './av1-obu.ts';
import { FRAME_CHOOSES, type Av1SequenceHeader } from './av1-sequence.ts';
import { BitReader } from './bits.ts';
import { renderedShape, type Ratio } from './vui.ts';

/**
 * Reads the sample aspect ratio by the render size of a shown key frame (AV1 5.9.2, 5.9.5, 5.9.6), for frames of the
 * sequence's own size, the one that containers give; undefined for square samples.
 * @param obu the frame, or its frame header
 * @throws BitstreamError
 */
export function keyFrameShape(obu: Obu, sequence: Av1SequenceHeader): Ratio | undefined {
  const { frames, width, height, reducedStillPicture } = sequence;
  const reader = new BitReader(obu.payload);
  // show_existing_frame, frame_type, show_frame
  if (!reducedStillPicture) reader.skip(4 + frames.presentationTimeBits);
  // disable_cdf_update
  reader.skip(1);
  const screenContent = frames.screenContent === FRAME_CHOOSES ? reader.flag() : frames.screenContent === 1;
  if (screenContent && frames.integerMotion === FRAME_CHOOSES) reader.skip(1);
  reader.skip(frames.frameIdBits);
  const hasOwnSize = !reducedStillPicture && reader.flag();
  reader.skip(frames.orderHintBits);
  skipRemovalTimes(reader, obu, frames);
  if (hasOwnSize) reader.skip(frames.widthBits + frames.heightBits);
  if (frames.superres && reader.flag()) reader.skip(3);
  if (!reader.flag()) return undefined;
  return renderedShape({ width, height }, { width: reader.read(16) + 1, height: reader.read(16) + 1 });
}

/** Skips the times at which a decoder removes the frame from its buffer, as operating points have them (AV1 5.9.2). */
export function skipRemovalTimes(reader: BitReader, { data }: Obu, frames: Av1SequenceHeader['frames']): void {
  if (frames.removalTimeBits === 0 || !reader.flag()) return;
  const [header = 0, extension = 0] = data;
  const hasExtension = (header & 4) !== 0;
  const [temporal, spatial] = hasExtension ? [extension >> 5, (extension >> 3) & 3] : [0, 0];
  for (const layers of frames.modelled) {
    const isOfPoint = (layers >> temporal) & (layers >> (spatial + 8)) & 1;
    if (layers === 0 || isOfPoint === 1) reader.skip(frames.removalTimeBits);
  }
}
