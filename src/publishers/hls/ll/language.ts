/** What a playlist tells of the language of a sound. */
export interface Language {
  /** In the form of RFC 5646; undefined where the source told none, or what is none. */
  readonly tag?: string;
  /** What its speakers call it. */
  readonly name: string;
}

const UNKNOWN: Language = { name: 'Audio' };
/** Codes of ISO 639-2 for what is not one language. */
const NO_LANGUAGES = new Set(['und', 'mis', 'zxx', 'mul']);

/** @param given what the source calls it: `ko`, `kor`, `pt-BR`, or words of its own */
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
