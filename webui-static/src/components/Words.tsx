// Form fields for name, description and labels.
interface Props {
  name?: string;
  description?: string | undefined; // undefined: no such field
  labels?: readonly string[] | undefined; // undefined: no such field
}

export const Words = ({ name, description, labels }: Props) => (
  <>
    <label>
      Name
      <input type="text" name="name" required defaultValue={name} />
    </label>
    {description !== undefined && (
      <label>
        Description
        <input type="text" name="description" defaultValue={description} />
      </label>
    )}
    {labels !== undefined && (
      <label>
        Labels, separated by commas
        <input type="text" name="labels" defaultValue={labels.join(', ')} />
      </label>
    )}
  </>
);
