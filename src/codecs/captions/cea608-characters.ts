/** Characters that differ from ASCII (CTA-608-E, table 50). */
const BASIC: Readonly<Record<number, string>> = {
  0x2a: 'á',
  0x5c: 'é',
  0x5e: 'í',
  0x5f: 'ó',
  0x60: 'ú',
  0x7b: 'ç',
  0x7c: '÷',
  0x7d: 'Ñ',
  0x7e: 'ñ',
  0x7f: '█',
};

/** From 0x30 on, after 0x11 (table 49); the tenth is a space that hides nothing. */
const SPECIAL = '®°½¿™¢£♪à\u00a0èâêîôû';
/** From 0x20 on, after 0x12: Spanish, miscellaneous and French (tables 5 to 7 of annex D). */
const SPANISH_FRENCH = "ÁÉÓÚÜü‘¡*'—©℠•“”ÀÂÇÈÊËëÎÏïÔÙùÛ«»";
/** From 0x20 on, after 0x13: Portuguese, German and Danish. */
const PORTUGUESE_GERMAN = 'ÃãÍÌìÒòÕõ{}\\^_|~ÄäÖöß¥¤│ÅåØø┌┐└┘';

/** Character of a byte from 0x20 to 0x7f. */
export function basicCharacter(code: number): string {
  return BASIC[code] ?? String.fromCharCode(code);
}

/** Special character of the second byte, 0x30 to 0x3f. */
export function specialCharacter(second: number): string {
  return SPECIAL[second - 0x30] ?? '';
}

/** Extended character of a control code, 0x12 or 0x13, and its second byte, 0x20 to 0x3f. */
export function extendedCharacter(control: number, second: number): string {
  return (control === 0x12 ? SPANISH_FRENCH : PORTUGUESE_GERMAN)[second - 0x20] ?? '';
}
