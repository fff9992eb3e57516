import { SAMPLERATES } from './aac-tables.ts';
import { buildAudioSpecificConfig } from './aac.ts';
import type { AdtsHeader } from './aac-adts.ts';
import { BitReader, BitstreamError, BitWriter } from './bits.ts';

/** id_syn_ele of a program_config_element (ISO/IEC 14496-3 table 4.85). */
const PROGRAM_CONFIG = 5;

/**
 * Builds the AudioSpecificConfig of frames with this ADTS header. When the header does not give the channels, it copies the
 * program_config_element that begins the frame.
 * @param frame raw, without the header
 * @throws BitstreamError when neither gives the channels
 */
export function configOfAdts(header: AdtsHeader, frame: Buffer): Buffer {
  if (header.channelConfiguration !== 0) return buildAudioSpecificConfig(header);
  const reader = new BitReader(frame);
  if (reader.read(3) !== PROGRAM_CONFIG) throw new BitstreamError('the AAC configuration does not give its channels');
  const writer = new BitWriter();
  writer.write(header.objectType, 5).write(SAMPLERATES.indexOf(header.samplerate), 4).write(0, 4);
  // GASpecificConfig: 1024 samples, no core coder, no extension
  writer.write(0, 3);
  copyProgramConfig(reader, writer);
  return writer.finish();
}

/** Copies a program_config_element (4.4.1.1); its comment is aligned to bytes of the enclosing data. */
function copyProgramConfig(reader: BitReader, writer: BitWriter): void {
  const copy = (bits: number): number => {
    const value = reader.read(bits);
    writer.write(value, bits);
    return value;
  };
  copy(4 + 2 + 4);
  const elements = copy(4) + copy(4) + copy(4);
  const lfe = copy(2);
  const data = copy(3);
  const coupling = copy(4);
  if (copy(1) === 1) copy(4);
  if (copy(1) === 1) copy(4);
  if (copy(1) === 1) copy(3);
  for (let element = 0; element < elements; element++) copy(5);
  for (let element = 0; element < lfe + data; element++) copy(4);
  for (let element = 0; element < coupling; element++) copy(5);
  reader.align();
  writer.align();
  for (let left = copy(8); left > 0; left--) copy(8);
}
