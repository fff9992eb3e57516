import * as av1 from '../codecs/av1.ts';
import { BitstreamError } from '../codecs/bits.ts';
import { ascii, box, fullBox, u16, u32, u8, zeros } from './fmp4/box.ts';

const ITEM = 1;
const ESSENTIAL = 0x80;
const FULL_RANGE = 0x80;
const UNSPECIFIED = 2;
/** Colours assumed if the bitstream has none: BT.709 primaries, the sRGB curve, a BT.601 matrix. */
const USUAL = { primaries: 1, transfer: 13, matrix: 6 };

/**
 * Builds a still picture file of one AV1 key frame ("AV1 Image File Format", on ISO/IEC 23008-12 and 23000-22).
 * @param unit a temporal unit in canonical form, with its sequence header
 * @throws BitstreamError when that is missing or malformed
 */
export function avifFile(unit: Buffer): Buffer {
  const ftyp = box('ftyp', ascii('avif'), u32(0), ascii('avifmif1miaf'));
  const properties = itemProperties(unit);
  const meta = (offset: number) =>
    fullBox(
      'meta',
      0,
      0,
      fullBox('hdlr', 0, 0, u32(0), ascii('pict'), zeros(13)),
      fullBox('pitm', 0, 0, u16(ITEM)),
      // offsets and lengths in 4 bytes, no base offset; one item in one extent
      fullBox('iloc', 0, 0, u16(0x4400, 1, ITEM, 0, 1), u32(offset, unit.length)),
      fullBox('iinf', 0, 0, u16(1), fullBox('infe', 2, 0, u16(ITEM, 0), ascii('av01'), zeros(1))),
      properties,
    );
  const start = ftyp.length + meta(0).length + 8;
  return Buffer.concat([ftyp, meta(start), u32(8 + unit.length), ascii('mdat'), unit]);
}

/** Box `iprp`: properties of the picture, all of the one item. */
function itemProperties(unit: Buffer): Buffer {
  const { width, height, monochrome, bitDepth, colour } = sequenceHeader(unit);
  const channels = monochrome ? 1 : 3;
  const { primaries, transfer, matrix } = colour;
  const ipco = box(
    'ipco',
    fullBox('ispe', 0, 0, u32(width, height)),
    fullBox('pixi', 0, 0, u8(channels, ...Array.from({ length: channels }, () => bitDepth))),
    box('av1C', av1.buildAv1Config(unit)),
    box(
      'colr',
      ascii('nclx'),
      u16(
        primaries === UNSPECIFIED ? USUAL.primaries : primaries,
        transfer === UNSPECIFIED ? USUAL.transfer : transfer,
        matrix === UNSPECIFIED ? USUAL.matrix : matrix,
      ),
      u8(colour.fullRange ? FULL_RANGE : 0),
    ),
  );
  return box('iprp', ipco, fullBox('ipma', 0, 0, u32(1), u16(ITEM), u8(4, 1, 2, ESSENTIAL | 3, 4)));
}

function sequenceHeader(unit: Buffer): ReturnType<typeof av1.parseSequenceHeader> {
  for (const { type, payload } of av1.obus(unit)) {
    if (type === av1.OBU.sequenceHeader) return av1.parseSequenceHeader(payload);
  }
  throw new BitstreamError('an AV1 picture has no sequence header');
}
