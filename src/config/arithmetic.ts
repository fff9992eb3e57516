const MAX_LENGTH = 200;
const TOKEN = /\d+(?:\.\d+)?|\.\d+|[a-z_]\w*|[-+*/()]|\S/gi;

/**
 * Value of a text of numbers, names, `+ - * /` and parentheses: `MAIN_W - 64 - 10`.
 * @param values of the names, in capital letters; case does not matter in the text
 * @returns undefined when the text is something else, or has no finite value
 */
export function evaluate(text: string, values: Readonly<Record<string, number>>): number | undefined {
  if (text.length > MAX_LENGTH) return undefined;
  const tokens = text.match(TOKEN) ?? [];
  let at = 0;

  const sum = (): number => {
    let value = product();
    for (let sign = tokens[at]; sign === '+' || sign === '-'; sign = tokens[at]) {
      at++;
      value += sign === '+' ? product() : -product();
    }
    return value;
  };
  const product = (): number => {
    let value = factor();
    for (let sign = tokens[at]; sign === '*' || sign === '/'; sign = tokens[at]) {
      at++;
      value = sign === '*' ? value * factor() : value / factor();
    }
    return value;
  };
  const factor = (): number => {
    const token = tokens[at++] ?? '';
    if (token === '-') return -factor();
    if (token === '(') {
      const value = sum();
      return tokens[at++] === ')' ? value : Number.NaN;
    }
    if (/^[.\d]/.test(token)) return Number(token);
    const name = token.toUpperCase();
    return Object.hasOwn(values, name) ? (values[name] as number) : Number.NaN;
  };

  const value = sum();
  return at === tokens.length && Number.isFinite(value) ? value : undefined;
}
