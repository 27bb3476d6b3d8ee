interface CheckboxProps {
  label: string;
  hint: string;
  checked: boolean;
  onChange: (on: boolean) => void;
}

export const Checkbox = ({ label, hint, checked, onChange }: CheckboxProps) => (
  <label className="flex items-start gap-2.5 text-base">
    <input
      type="checkbox"
      className="mt-0.5 size-4.5 shrink-0 accent-accent-fill"
      checked={checked}
      onChange={({ target }) => onChange(target.checked)}
    />
    <span>
      {label}
      <span className="block text-sm text-ink-3">{hint}</span>
    </span>
  </label>
);
