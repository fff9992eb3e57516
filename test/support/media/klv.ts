/** Key of a UAS datalink local set (MISB ST 0601). */
const KEY = Buffer.from('060e2b34020b01010e01030101000000', 'hex');

/** A KLV item whose value is this text. */
export function klvItem(text: string): Buffer {
  const value = Buffer.from(text);
  return Buffer.concat([KEY, Buffer.of(0x82, value.length >> 8, value.length & 0xff), value]);
}

/** Access unit cells of timed metadata, as synchronous KLV has them (ISO/IEC 13818-1 2.12.4): service 0, a random access point. */
export function metadataCells(...units: readonly Buffer[]): Buffer {
  return Buffer.concat(units.flatMap((unit, i) => [Buffer.of(0, i, 0xdf, unit.length >> 8, unit.length & 0xff), unit]));
}
