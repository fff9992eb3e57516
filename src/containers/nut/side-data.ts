import { NutError } from './error.ts';
import type { VlcReader } from './vlc.ts';

const MAX_ENTRIES = 256;
const MAX_BYTES = 1024 * 1024;
const STRING = -1;
const BINARY = -2;
const INTEGER = -3;
const TIME = -4;
const EXTRADATA = 'Extradata';

/**
 * Reads the side data and the metadata that a frame's data begins with (NUT version 4, FLAG_SM_DATA).
 * @returns the new decoder configuration from this frame on, if it changes
 * @throws NutError
 */
export function readSideData(reader: VlcReader): Buffer | undefined {
  const extradata = readList(reader);
  readList(reader);
  if (reader.short) throw new NutError('side data is longer than its frame');
  return extradata;
}

function readList(reader: VlcReader): Buffer | undefined {
  let extradata: Buffer | undefined;
  for (let left = reader.bounded(MAX_ENTRIES, 'the count of side data'); left > 0; left--) {
    const name = reader.vb(MAX_BYTES, 'the name of side data').toString('latin1');
    const type = reader.s();
    if (type === STRING) {
      reader.vb(MAX_BYTES, 'a text of side data');
    } else if (type === BINARY) {
      reader.vb(MAX_BYTES, 'the type of side data');
      const data = reader.vb(MAX_BYTES, 'side data');
      if (name === EXTRADATA) extradata = Buffer.from(data);
    } else if (type === INTEGER || type < TIME) {
      // a fraction has its denominator in its type
      reader.s();
    } else if (type === TIME) {
      reader.v();
    }
  }
  return extradata;
}
