const ATTRIBUTE = /\s*([A-Z0-9-]+)=("[^"]*"|[^,"]*)(?:,|$)/gy;

/** Attributes of a tag by their names, without quotes (RFC 8216 section 4.2). */
export type Attributes = Readonly<Record<string, string | undefined>>;

/** Reads the attributes behind the colon of a tag, up to the first that is malformed. @param expand replaces variables of a value */
export function attributeList(list: string, expand = (value: string): string => value): Attributes {
  const pairs = Array.from(list.matchAll(ATTRIBUTE), ([, name = '', text = '']) => [
    name,
    expand(text.replace(/^"|"$/g, '').trim()),
  ]);
  return Object.assign(Object.create(null), Object.fromEntries(pairs)) as Attributes;
}
