/** Handler for `catch`: ignores one error of the system, such as ENOENT, and throws any other. */
export function unless(code: string): (error: unknown) => undefined {
  return (error) => {
    if ((error as NodeJS.ErrnoException).code !== code) throw error;
  };
}
