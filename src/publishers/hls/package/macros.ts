/** Fills in `${Name}`; a name without a value stays. */
export function fillMacros(text: string, values: Readonly<Record<string, string>>): string {
  return text.replaceAll(/\$\{(\w+)\}/g, (macro, name: string) =>
    Object.hasOwn(values, name) ? (values[name] as string) : macro,
  );
}
