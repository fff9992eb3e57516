import Type, { type Static } from 'typebox';
import { evaluate } from '../arithmetic.ts';
import { flag, integer, parsed, repeated, text } from '../blocks.ts';

const length = () =>
  Type.Optional(
    parsed('a length (of numbers, MAIN_W, MAIN_H, + - * / and parentheses)', (given) =>
      evaluate(given, { MAIN_W: 1920, MAIN_H: 1080 }) === undefined ? undefined : given,
    ),
  );

const Overlay = Type.Object({
  /** URL of http, https or file, or a path relative to the file that it stands in. */
  url: text(),
  /** Pixels of the encoded frame, whose size is MAIN_W and MAIN_H. */
  left: length(),
  top: length(),
  /** Default: the size of the image, or the one that keeps its aspect ratio. */
  width: length(),
  height: length(),
  /** Percent; 0: invisible. */
  opacity: integer(100, { max: 100 }),
});

const OverlayInfo = Type.Object({
  enable: flag(true),
  /** May hold wildcards. */
  outputStreamName: text(),
  /** Comma list of variant names, which may hold wildcards; without it, every video track. */
  variantNames: Type.Optional(text()),
  overlay: repeated(Overlay),
});

/** Images to draw on encoded frames: the file that MediaOptions/Overlays/Path names, in OvenMediaEngine's format. */
export const OverlayMap = Type.Object({ overlayInfo: repeated(OverlayInfo) });

export type OverlayConfig = Static<typeof Overlay>;
