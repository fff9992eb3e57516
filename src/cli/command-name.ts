/**
 * Name of a program as its user starts it: from the sources by npm, from a bundle as a command of the npm package.
 * @param name of the npm script, `sign`
 */
export function commandName([, file = '']: readonly string[], name: string): string {
  return file.endsWith('.ts') ? `npm run ${name} --` : `kiln-${name}`;
}
