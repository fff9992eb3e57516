/**
 * Fills in macros, written `${Name}`.
 * @param valueOf value of a name; undefined for one that is none: its macro stays
 */
export function fillMacros(text: string, valueOf: (name: string) => string | undefined): string {
  return text.replaceAll(/\$\{(\w+)\}/g, (macro, name: string) => valueOf(name) ?? macro);
}
