/** Language of an audio rendition in playlists. */
export interface Language {
  /** In the form of RFC 5646; undefined if the source names none, or no real language. */
  readonly tag?: string;
  /** Name in the language itself. */
  readonly name: string;
}

const UNKNOWN: Language = { name: 'Audio' };
/** Codes of ISO 639-2 that do not stand for one language. */
const NO_LANGUAGES = new Set(['und', 'mis', 'zxx', 'mul']);

/** @param given name in the source: `ko`, `kor`, `pt-BR`, or free text */
export function describeLanguage(given: string | undefined): Language {
  if (given === undefined || given === '') return UNKNOWN;
  try {
    const [tag = ''] = Intl.getCanonicalLocales(given);
    if (NO_LANGUAGES.has(tag)) return UNKNOWN;
    return { tag, name: new Intl.DisplayNames([tag], { type: 'language' }).of(tag) ?? tag };
  } catch (error) {
    if (error instanceof RangeError) return { name: given };
    throw error;
  }
}
